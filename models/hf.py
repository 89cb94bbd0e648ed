"""The wide path: any transformers causal language model as a target.

Slower than the lean decoder, and it runs what that one does not know. transformers is imported when a model is loaded.
"""

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from assistant.errors import ArchitectureError, ModelCorruptError, UsageError
from models.layers import causal
from models.target import Cache, Forward, TargetSpec

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_FALLBACK_POSITIONS = 2048


class HFTarget:
    """A transformers model behind `models.target.Target`; features are its last hidden state, after the final norm."""

    def __init__(self, model: "PreTrainedModel", *, name: str) -> None:
        """Wrap a loaded causal language model, in evaluation mode from now on.

        Raises:
            ArchitectureError: its layers keep something else than one key and one value per token and head, or it has
                no plain output head.
        """
        self._model = model.eval()
        self._decoder = model.get_decoder()
        arguments = inspect.signature(self._decoder.forward).parameters
        self._cache_argument = "cache" if "cache" in arguments else "past_key_values"
        if model.get_output_embeddings() is None:
            raise ArchitectureError(f"{name} has no output head: it is no causal language model")
        self._seen: Tensor | None = None
        self._decoder.register_forward_hook(self._catch)
        self.spec = self._probe(name)

    @classmethod
    def from_folder(
        cls,
        path: Path | str,
        gguf_file: str | None = None,
        precision: str = "float32",
        device: torch.device | str = "cpu",
        *,
        name: str | None = None,
    ) -> Self:
        """Load a folder's safetensors, or one GGUF file in it, from disk alone.

        Raises:
            UsageError: int8, which only the lean decoder has, or an unknown precision.
            ModelCorruptError: the files cannot be read or do not fit together.
            ArchitectureError: transformers does not know the model.
        """
        if precision not in _DTYPES:
            raise UsageError(f"{path} runs through transformers, in {', '.join(_DTYPES)} only, not in {precision}")
        from transformers import AutoModelForCausalLM

        extra = {} if gguf_file is None else {"gguf_file": gguf_file}
        try:
            model = AutoModelForCausalLM.from_pretrained(
                str(path), dtype=_DTYPES[precision], local_files_only=True, **extra
            )
        except OSError as error:
            raise ModelCorruptError(f"{path} cannot be loaded: {_first_line(error)}") from error
        except (ValueError, KeyError, NotImplementedError) as error:
            raise ArchitectureError(f"transformers cannot run {path}: {_first_line(error)}") from error
        return cls(torch.nn.Module.to(model, torch.device(device)), name=name or Path(path).name)

    @torch.inference_mode()
    def forward(
        self, ids: Tensor, positions: Tensor, cache: Cache, mask: Tensor | None = None, *, last_only: bool = False
    ) -> Forward:
        """See `models.target.Target.forward`."""
        n = ids.shape[0]
        seen = causal(n, ids.device) if mask is None else mask
        logits = self._run(ids, positions, _bridge(cache), _additive(seen, cache.length, self.spec.dtype), last_only)
        cache.advance(n)
        features, self._seen = self._seen, None
        assert features is not None, "the decoder's hook runs in every forward"
        return Forward(logits.float(), features[0])

    def embed(self, ids: Tensor) -> Tensor:
        """(n,) ids -> (n, H) input embeddings."""
        with torch.inference_mode():
            embeddings: Tensor = self._model.get_input_embeddings()(ids)
        return embeddings

    def head_rows(self, ids: Tensor) -> Tensor:
        """(k,) ids -> (k, H): those rows of the output head."""
        weight: Tensor = self._model.get_output_embeddings().weight
        return weight.detach()[ids]

    def _run(self, ids: Tensor, positions: Tensor, bridge: Any, bias: Tensor, last_only: bool) -> Tensor:  # noqa: FBT001
        arguments: dict[str, Any] = {self._cache_argument: bridge, "use_cache": True, "return_dict": True}
        if last_only:
            arguments["logits_to_keep"] = 1
        out = self._model(
            input_ids=ids[None], position_ids=positions[None], attention_mask=bias[None, None], **arguments
        )
        logits: Tensor = out.logits[0]
        return logits[-1:] if last_only else logits

    def _catch(self, module: Any, arguments: Any, output: Any) -> None:  # noqa: ARG002 - a hook's signature
        self._seen = output[0]

    def _probe(self, name: str) -> TargetSpec:
        """Run one token to see what the layers keep."""
        config = self._model.config.get_text_config()
        parameter = next(self._model.parameters())
        probe = _Probe()
        ids = torch.zeros(1, dtype=torch.int64, device=parameter.device)
        try:
            with torch.inference_mode():
                self._run(ids, ids, _bridge(probe), ids[None].to(parameter.dtype), last_only=True)
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
            raise ArchitectureError(f"{name} keeps another state than keys and values") from error
        self._seen = None
        if len(probe.shapes) != config.num_hidden_layers or len(set(probe.shapes.values())) != 1:
            raise ArchitectureError(f"{name} does not keep one key and value of one size in every layer")
        kv_heads, head_dim = probe.shapes[0]
        return TargetSpec(
            name=name,
            vocab_size=self._model.get_output_embeddings().weight.shape[0],
            hidden_size=config.hidden_size,
            layers=config.num_hidden_layers,
            kv_heads=kv_heads,
            head_dim=head_dim,
            max_positions=_positions(config),
            precision=str(parameter.dtype).removeprefix("torch."),
            dtype=parameter.dtype,
            device=parameter.device,
            batch_exact=False,
        )


class _Probe:
    """A cache that only notes the sizes of what is written."""

    length = 0

    def __init__(self) -> None:
        self.shapes: dict[int, tuple[int, int]] = {}

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        if keys.shape == values.shape:
            self.shapes[layer] = keys.shape[0], keys.shape[2]
        return keys, values

    def advance(self, rows: int) -> None:
        raise NotImplementedError


def _bridge(cache: Cache) -> Any:
    """A transformers cache that writes into ours."""
    from transformers.cache_utils import Cache as TransformersCache

    class Bridge(TransformersCache):
        def __init__(self) -> None:
            super().__init__(layers=[])

        def update(
            self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: object, **__: object
        ) -> tuple[Tensor, Tensor]:
            keys, values = cache.write(layer_idx, key_states[0], value_states[0])
            return keys[None], values[None]

        def get_seq_length(self, layer_idx: int = 0) -> int:  # noqa: ARG002 - all layers are of one length
            return cache.length

    return Bridge()


def _additive(mask: Tensor, past: int, dtype: torch.dtype) -> Tensor:
    """(n, n) bool -> (n, past + n): 0 where a row sees, the dtype's lowest where not; every kernel takes this form."""
    hidden = torch.zeros((mask.shape[0], past + mask.shape[0]), dtype=dtype, device=mask.device)
    hidden[:, past:].masked_fill_(~mask, torch.finfo(dtype).min)
    return hidden


def _positions(config: Any) -> int:
    """The context; a sliding window ends it, because within the window full attention is the same."""
    context = int(getattr(config, "max_position_embeddings", None) or _FALLBACK_POSITIONS)
    slides = getattr(config, "use_sliding_window", True) and _only_type(config) != "full_attention"
    window = getattr(config, "sliding_window", None) if slides else None
    return min(context, int(window)) if window else context


def _only_type(config: Any) -> str | None:
    types = set(getattr(config, "layer_types", None) or [])
    return types.pop() if len(types) == 1 else None


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
