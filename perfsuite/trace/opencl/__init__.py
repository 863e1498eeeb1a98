"""An OpenCL device's commands: their clock, the operators that they compute, idle time and growth."""
