package dev.nereid.spi;

import java.util.List;
import java.util.Optional;

/**
 * A loaded model version: state shared by its instances. <em>Implemented by backends.</em>
 *
 * <p>Called on control threads that may block, one call at a time unless {@link BackendTraits#parallelInstances()}.
 */
public interface Model extends AutoCloseable {
    /**
     * Makes one execution context of the model.
     *
     * @param context the instance's name and device, valid until the instance is closed
     * @return the instance, owned and later closed by the server
     * @throws BackendException if it cannot be made; the load of the model fails with it
     */
    ModelInstance newInstance(InstanceContext context) throws BackendException;

    /**
     * Says how long executions of this very model hold the thread that runs them, where that is a matter of its
     * configuration. Asked once, after the load.
     *
     * @return empty, as by default, for what {@link BackendTraits#execution()} says
     */
    default Optional<BackendTraits.Execution> execution() {
        return Optional.empty();
    }

    /**
     * Makes the model's own rule for what goes into a batch. Asked once, after the load.
     *
     * @return the rule, owned and later closed by the server; empty, as by default, for what the configuration says
     *     alone
     * @throws BackendException if it cannot be made; the load of the model fails with it
     */
    default Optional<BatchingStrategy> batching() throws BackendException {
        return Optional.empty();
    }

    /**
     * Tells how much memory the model occupies, for the statistics of the server. Asked once, after the instances were
     * made.
     *
     * @return the memory by place; empty, as by default, if that is not known
     * @throws BackendException if it cannot be told; the load of the model fails with it
     */
    default List<MemoryUsage> memoryUsage() throws BackendException {
        return List.of();
    }

    /** Frees what the model holds. Called once, after the last of its instances was closed. Does nothing by default. */
    @Override
    default void close() {}
}
