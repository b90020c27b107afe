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

/** Computes SCORE of VECTOR, on the device if VECTOR already lies there. */
final class Score implements Backend {
    private final Gpu gpu;

    Score(Gpu gpu) {
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
        Tensor vectors = batch.gather("VECTOR", place);
        gpu.await(vectors);
        Tensor scores = batch.allocate("SCORE", DataType.FP32, Shape.of(batch.size(), 1), place);
        gpu.score(vectors.data(), scores.data());
        batch.fence("SCORE", gpu.record());
    }
}
