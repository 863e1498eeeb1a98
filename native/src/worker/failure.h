/* An error that a user can act on: one line. */
#ifndef PERFSUITE_WORKER_FAILURE_H
#define PERFSUITE_WORKER_FAILURE_H

#include <stdexcept>
#include <string>

namespace perfsuite {

class Failure : public std::runtime_error {
  public:
    /* `kind` is the class of the suite's errors that the desk raises again, such as "EngineError". */
    explicit Failure(const std::string &text, std::string kind = "MeasurementError")
        : std::runtime_error(text), kind_(std::move(kind)) {}
    const std::string &kind() const { return kind_; }

  private:
    std::string kind_;
};

/* The text of `errno`, or of another error number. */
std::string system_text();
std::string system_text(int error);

} // namespace perfsuite

#endif
