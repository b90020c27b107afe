package dev.nereid.grpc.wire;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.Refusals;
import dev.nereid.api.RequestProtocol;
import io.grpc.ServerCall;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Refuses calls, and logs failed requests at debug level. Static functions only. */
public final class RequestFailures {
    private static final Logger LOG = LoggerFactory.getLogger(RequestFailures.class);

    private RequestFailures() {}

    /**
     * Refuses a call before its method sees it: counts and logs the refusal, and fails the call. Returns a listener
     * that ignores what the client sends.
     */
    public static <Q> ServerCall.Listener<Q> refuse(
            ServerCall<Q, ?> call, Refusals refusals, InferenceException error) {
        refusals.count(RequestProtocol.GRPC, error.refusalCause());
        log("", call.getMethodDescriptor().getFullMethodName(), error);
        GrpcErrors.fail(call, error);
        return new ServerCall.Listener<>() {};
    }

    /**
     * Logs a request that failed.
     *
     * @param id the client's name for the request; empty if it has none, or was not read
     * @param model the name of the model, or of the method if it concerns no model
     */
    public static void log(String id, String model, InferenceException error) {
        if (LOG.isDebugEnabled()) {
            LOG.atDebug()
                    .addKeyValue("requestId", Quoted.text(id))
                    .addKeyValue("model", Quoted.text(model))
                    .addKeyValue("status", GrpcErrors.name(error))
                    .addKeyValue("text", error.publicMessage())
                    .log("request failed");
        }
    }
}
