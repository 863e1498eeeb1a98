"""What is run: an architecture, its weights (a GGUF file, real or synthetic) and a scenario."""

from perfsuite.workload.architecture import Architecture, LatentAttention, MixtureOfExperts
from perfsuite.workload.catalog import find, names
from perfsuite.workload.gguf_metadata import GgufModel, read_gguf
from perfsuite.workload.huggingface import from_config
from perfsuite.workload.quantization import quantizations
from perfsuite.workload.scenario import Scenario, find_scenario, scenario_names
from perfsuite.workload.tensors import TensorSpec, tensor_specs
from perfsuite.workload.weights import Weights, materialize, resolve, synthetic_weights

__all__ = [
    "Architecture",
    "GgufModel",
    "LatentAttention",
    "MixtureOfExperts",
    "Scenario",
    "TensorSpec",
    "Weights",
    "find",
    "find_scenario",
    "from_config",
    "materialize",
    "names",
    "quantizations",
    "read_gguf",
    "resolve",
    "scenario_names",
    "synthetic_weights",
    "tensor_specs",
]
