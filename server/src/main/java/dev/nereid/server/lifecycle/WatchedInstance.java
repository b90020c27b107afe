package dev.nereid.server.lifecycle;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import java.util.function.Supplier;

/**
 * Forwards to an instance, and reports a close that takes too long. As safe for concurrent use as the instance.
 *
 * @param instance the instance
 * @param closing begins to watch the close
 */
record WatchedInstance(ModelInstance instance, Supplier<ModelLoadWatch.Step> closing) implements ModelInstance {
    @Override
    public void execute(Batch batch) throws BackendException {
        instance.execute(batch);
    }

    @Override
    public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
        instance.sequenceEnded(id, reason);
    }

    @Override
    public boolean isReady() {
        return instance.isReady();
    }

    @Override
    public void close() {
        try (ModelLoadWatch.Step _ = closing.get()) {
            instance.close();
        }
    }
}
