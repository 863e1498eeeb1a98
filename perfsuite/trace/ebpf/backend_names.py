"""What ggml's backends are called, by the guid that each has."""

from __future__ import annotations

#: ``ggml_backend_*_guid`` of ggml 0.25.3, ``ggml/src/ggml-*/``. BLAS and OpenVINO share one, and are both left out.
_NAMES = {
    "aa67c74396e6a38ae3afea9236bcfc89": "CPU",
    "dee070a2734e4dbcb0c74fd46d4e90fe": "OpenCL",
    "2cdde81c65b365736a1288611cc9dc25": "CUDA",
    "b8f74f86403ce10291c8dde9023fc02b": "Vulkan",
    "81a18b1e71ec79ed2b85dc8a619830e6": "Metal",
    "99685b6cd2833d24253672e15b0e1403": "RPC",
    "7b57dcafde121d491111111111111111": "Hexagon",
    "5805138fcd3a619de7cd98a903fd7c53": "SYCL",
    "a194afacbd4f4734be1a9e711f9eed64": "CANN",
    "67c7a4b178744f519d65446de41b829a": "WebGPU",
}


def backend_name(guid: bytes | memoryview) -> str:
    """Return a backend's name, or its guid where the name is not known."""
    digits = bytes(guid).hex()
    return _NAMES.get(digits, f"guid:{digits}")
