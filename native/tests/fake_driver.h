/* What a test asks the stand-in for an OpenCL library; see fake_driver.c. */
#ifndef PERFSUITE_TESTS_FAKE_DRIVER_H
#define PERFSUITE_TESTS_FAKE_DRIVER_H

#define FAKE_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

FAKE_API const char *fake_driver_launched(void); /* the first letter of each kernel that was launched */
FAKE_API int fake_driver_built(void);            /* programs made from source */
FAKE_API int fake_driver_living(void);           /* contexts, programs, kernels, buffers and events */
FAKE_API void fake_driver_refuse(int status);    /* commands from now on; 0 for none */
FAKE_API void fake_driver_reset(void);

#ifdef __cplusplus
}
#endif

#endif
