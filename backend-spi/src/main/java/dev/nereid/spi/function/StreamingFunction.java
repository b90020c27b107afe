package dev.nereid.spi.function;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ResponseSender;

/**
 * A step in Java that sends any number of responses to a request. <em>Implemented by backends.</em>
 *
 * <p>Its models are decoupled. The plugin is made as that of a {@link TensorFunction}:
 *
 * {@snippet :
 * @BackendFunction(name = "count")
 * @Input(name = "N", type = DataType.INT32, dims = 1)
 * @Output(name = "I", type = DataType.INT32, dims = 1)
 * public final class Count implements StreamingFunction {
 *     @Override
 *     public void apply(InferenceRequest request, ResponseSender sender) {
 *         int n = request.requireInput("N").ints()[0];
 *         for (int i = 0; i < n && !sender.isCancelled(); i++) {
 *             InferenceResponse response = sender.newResponse();
 *             response.putInts("I", Shape.of(1), i);
 *             sender.send(response);
 *         }
 *     }
 * }
 * }
 *
 * <p>A stream that goes on after its method returned, without holding a thread, is a {@link BackendProvider} of its author,
 * which sends by {@link InferenceRequest#sender()}.
 *
 * @since 1.0
 */
public non-sealed interface StreamingFunction extends FunctionProvider {

    /**
     * Sends the responses to one request. Called by one thread at a time for each instance of a model, and by several threads
     * at once for several instances: fields are set by {@link #open} alone, or safe for that. May compute or wait for as long
     * as it needs, unless {@link #execution()} says otherwise; the instance serves no other request meanwhile.
     *
     * <p>A client that reads slowly fills a buffer of limited size: {@link ResponseSender#isReady()} tells. A client that is
     * gone is seen by {@link ResponseSender#isCancelled()}.
     *
     * @param request the request; it is not {@linkplain InferenceRequest#reschedule() rescheduled}
     * @param sender sends the responses; the server ends it when this method returns, unless it is ended then
     * @throws BackendException ends the request with this error, after the responses that were sent; the others of its
     *     batch are not touched, and neither are they by any other exception, which is reported as
     *     {@link ErrorCode#INTERNAL}
     */
    void apply(InferenceRequest request, ResponseSender sender);

    /**
     * Opens the function for one model. Called once for each load of a version, on a control thread that may block.
     *
     * <p>Resources of the function for one model are made here, from its files, its parameters and its other services.
     * The result serves this model alone, until it is closed. The server calls {@code apply} and {@link #close} of it;
     * name, completion and execution come from this function. So the result may be a lambda.
     *
     * @param model the configuration, files, log, metrics and client of the model, valid until the result is closed
     * @return a new object; this function, as by default, if it needs nothing for a model
     * @throws BackendException if the function cannot serve the model; its load fails with this error
     */
    default StreamingFunction open(ModelContext model) {
        return this;
    }

    /**
     * Creates the backend around this function.
     *
     * @param context not used
     * @return a backend with the executions that {@link #execution()} says
     */
    @Override
    default Backend create(BackendContext context) {
        return new StreamingFunctionBackend(this);
    }
}
