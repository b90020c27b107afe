package dev.nereid.spi;

import java.util.concurrent.CompletionStage;

/**
 * A request to another model of the same server, under construction. Confined to one thread at a time, and sent once.
 * <em>Implemented by the server.</em>
 *
 * @since 1.0
 */
@Incubating
public interface ModelRequest {
    /**
     * Ties the request to the one that causes it: the cancellation and the deadline of that request apply to this one,
     * and a chain of requests that leads back to a model which waits for it is refused.
     *
     * @param cause the request on whose behalf the other model is called
     * @return this request
     */
    ModelRequest onBehalfOf(InferenceRequest cause);

    /**
     * Sets the id of the request.
     *
     * @param id the id; empty, as by default, for none
     * @return this request
     */
    ModelRequest id(String id);

    /**
     * Sets the priority of the request.
     *
     * @param priority 1 for the highest, or 0, as by default, for that of the other model's configuration; unsigned
     * @return this request
     */
    ModelRequest priority(long priority);

    /**
     * Limits the wait in the queue of the other model, where that allows it.
     *
     * @param micros the time in microseconds; 0, as by default, for that of the configuration; unsigned
     * @return this request
     */
    ModelRequest timeoutMicros(long micros);

    /**
     * Selects a version of the model.
     *
     * @param version the version; without it, the server selects one by the model's version policy
     * @return this request
     */
    ModelRequest version(long version);

    /**
     * Adds an input.
     *
     * @param name the name of an input of the other model
     * @param tensor its content, in memory that stays valid and unchanged until the last response arrived: an input of
     *     the causing request, an output of another {@link ModelResponse} that is still open, or memory of the caller
     * @return this request
     */
    ModelRequest input(String name, Tensor tensor);

    /**
     * Requests an output.
     *
     * @param name the name of an output of the other model; without any, all outputs are requested
     * @return this request
     */
    ModelRequest output(String name);

    /**
     * Adds a parameter.
     *
     * @param name the parameter's name
     * @param value its value
     * @return this request
     */
    ModelRequest parameter(String name, ParameterValue value);

    /**
     * Makes the request part of a sequence.
     *
     * @param sequence the position in the sequence
     * @return this request
     */
    ModelRequest sequence(Sequence sequence);

    /**
     * Sends the request to a model with one response. Never blocks.
     *
     * @return completes with the response, which the receiver closes, or exceptionally with a {@link BackendException};
     *     on a thread of the server, so actions that follow must be short
     */
    CompletionStage<ModelResponse> send();

    /**
     * Sends the request to any model. Never blocks.
     *
     * @param observer receives the responses
     * @return the handle of the request
     */
    ModelCall send(ModelResponseObserver observer);
}
