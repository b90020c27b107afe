package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.FormingBatch;
import dev.nereid.spi.RequestView;

/**
 * Forwards to a plugin's batching strategy through the plugin boundary. Immutable; confined as the strategy.
 *
 * <p>Exceptions of the strategy while a batch is formed pass unchanged to the scheduler, which handles them.
 */
final class IsolatedBatchingStrategy implements BatchingStrategy {
    private final BatchingStrategy strategy;
    private final PluginBoundary boundary;

    IsolatedBatchingStrategy(BatchingStrategy strategy, PluginBoundary boundary) {
        this.strategy = strategy;
        this.boundary = boundary;
    }

    @Override
    @SuppressWarnings("NullAway") // A plugin is not compiled with our checks: it may return null.
    public FormingBatch begin() {
        ClassLoader before = boundary.enter();
        try {
            FormingBatch batch = strategy.begin();
            if (batch == null) {
                throw new BackendException(ErrorCode.INTERNAL, "BatchingStrategy.begin returned null");
            }
            return new IsolatedFormingBatch(batch);
        } finally {
            PluginBoundary.exit(before);
        }
    }

    @Override
    public void close() {
        boundary.close("BatchingStrategy.close", strategy::close);
    }

    /** Forwards to a forming batch of a plugin through the plugin boundary. */
    private final class IsolatedFormingBatch implements FormingBatch {
        private final FormingBatch batch;

        IsolatedFormingBatch(FormingBatch batch) {
            this.batch = batch;
        }

        @Override
        public boolean include(RequestView request) {
            ClassLoader before = boundary.enter();
            try {
                return batch.include(request);
            } finally {
                PluginBoundary.exit(before);
            }
        }

        @Override
        public void close() {
            ClassLoader before = boundary.enter();
            try {
                batch.close();
            } finally {
                PluginBoundary.exit(before);
            }
        }
    }
}
