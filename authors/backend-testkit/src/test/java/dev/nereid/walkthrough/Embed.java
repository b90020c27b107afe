package dev.nereid.walkthrough;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;

/** Computes VECTOR of TOKENS on the device of the instance, and leaves it there. */
final class Embed implements Backend {
    static final long WIDTH = 4;

    private final Gpu gpu;

    Embed(Gpu gpu) {
        this.gpu = gpu;
    }

    @Override
    public BackendTraits traits() {
        return BackendTraits.DEFAULT.withPlaces(MemoryPlace.Kind.GPU);
    }

    @Override
    public Model load(ModelContext model) {
        return instance -> {
            MemoryPlace place =
                    new MemoryPlace(MemoryPlace.Kind.GPU, instance.device().id());
            return batch -> execute(batch, place);
        };
    }

    private void execute(Batch batch, MemoryPlace place) {
        Tensor tokens = batch.gather("TOKENS", place);
        gpu.await(tokens);
        Tensor vectors = batch.allocate("VECTOR", DataType.FP32, Shape.of(batch.size(), WIDTH), place);
        gpu.embed(tokens.data(), vectors.data());
        batch.fence("VECTOR", gpu.record());
    }
}
