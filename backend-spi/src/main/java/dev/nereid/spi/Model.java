package dev.nereid.spi;

import java.util.List;
import java.util.Optional;

/**
 * A loaded model version: state shared by its instances. <em>Implemented by backends.</em>
 *
 * <p>Called on control threads that may block, one call at a time unless {@link BackendTraits#parallelInstances()}.
 *
 * @since 1.0
 */
public interface Model extends AutoCloseable {
    /**
     * Creates one execution context of the model.
     *
     * @param context the instance's name and device, valid until the instance is closed
     * @return the instance, owned and later closed by the server
     * @throws BackendException if it cannot be created; the load of the model fails with it
     */
    ModelInstance newInstance(InstanceContext context);

    /**
     * Returns the kind of execution of this model, where that depends on its configuration. Called once, after the load.
     *
     * @return the kind; empty, as by default, for that of {@link BackendTraits#execution()}
     */
    default Optional<BackendTraits.Execution> execution() {
        return Optional.empty();
    }

    /**
     * Creates the model's own rule for which requests share a batch. Called once, after the load.
     *
     * @return the rule, owned and later closed by the server; empty, as by default, for that of the configuration alone
     * @throws BackendException if it cannot be created; the load of the model fails with it
     */
    default Optional<BatchingStrategy> batching() {
        return Optional.empty();
    }

    /**
     * Says whether the loaded model suits other instances. It does not if a resource was sized by their number, such as
     * the threads that a framework computes with. Called before the instances of a serving model are exchanged, since
     * its configuration has changed; if it does not, the server loads the model again in place of that.
     *
     * @param instances the devices of all instances that the model is to have, as {@link ModelContext#instances()}
     * @return {@code true} unless overridden
     * @throws BackendException if that cannot be determined; the model is loaded again then
     */
    @Incubating
    default boolean suits(List<Device> instances) {
        return true;
    }

    /**
     * Returns the memory that the model occupies at this moment.
     *
     * <p>It is for the statistics of the server, and for the budget of models that are loaded on demand. Called after the
     * instances were created, and again while statistics are read or the budget is short: at most once a second, one call
     * at a time, on a thread that may block, at the same time as executions and {@link #newInstance}. Never called from the
     * begin of {@link #close}, which waits for its return; so it should be quick.
     *
     * @return the memory by place, owned by the server; empty, as by default, if that is not known
     * @throws BackendException if it cannot be determined; at first the load of the model fails with it, later the last
     *     value is kept, and the failure is logged once
     */
    default List<MemoryUsage> memoryUsage() {
        return List.of();
    }

    /** Frees the resources of the model. Called once, after the last of its instances was closed. Does nothing by default. */
    @Override
    default void close() {}
}
