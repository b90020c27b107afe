package dev.nereid.scheduler.client;

import dev.nereid.api.call.CallChain;
import dev.nereid.spi.Tensor;
import java.util.Optional;

/**
 * A request in execution that causes requests to other models. Used as its backend may use it. An interface, since its
 * implementation in {@code batch} depends on this package.
 */
public interface CausingRequest {
    /** Returns the call chain of a caused request: the models of this chain without its own, and its execution. */
    CallChain chain();

    /** Returns the object that waits for the caused request: the execution, or the request alone. Known by identity. */
    Object waiting();

    /** Returns whether the request is complete, so that nothing cancels it any more. */
    boolean isCompleted();

    /**
     * Keeps the memory of an input until the returned action has run, whatever the backend does meanwhile.
     *
     * @param input a tensor that the backend passes on
     * @return the action, to be run once, on any thread; empty if the tensor lies in no memory of the request
     */
    Optional<Runnable> keep(Tensor input);
}
