/* A shared library that this process loads. */
#ifndef PERFSUITE_WORKER_LIBRARY_H
#define PERFSUITE_WORKER_LIBRARY_H

#include <string>

namespace perfsuite {

/* Stays loaded until the process ends. */
class Library {
  public:
    /* `GLOBAL` offers its functions to what is loaded later; `THERE_ALREADY` takes what somebody else has brought in. */
    enum class Loading { LOCAL, GLOBAL, THERE_ALREADY };

    /* Raises a `Failure` where the library, or one that it needs, cannot be loaded. */
    explicit Library(const std::string &path, Loading how = Loading::LOCAL);

    /* A function by its declaration: `library.function(&ps_engine_open, "ps_engine_open")`; a `Failure` where the
     * library has no such function. */
    template <typename Function> Function function(Function, const char *name) const {
        return reinterpret_cast<Function>(symbol(name));
    }

    /* Whether somebody has brought a library into this process. */
    static bool is_loaded(const std::string &path);

  private:
    void *symbol(const char *name) const;

    std::string path_;
    void *handle_;
};

/* The function of a library that has a declaration's name. */
#define PS_FUNCTION(library, name) (library).function(decltype(&name)(), #name)

} // namespace perfsuite

#endif
