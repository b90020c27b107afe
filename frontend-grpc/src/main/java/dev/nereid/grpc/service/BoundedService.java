package dev.nereid.grpc.service;

import dev.nereid.api.InferenceException;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.wire.GrpcErrors;
import dev.nereid.grpc.wire.RequestFailures;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;
import io.grpc.ServerServiceDefinition;
import java.io.ByteArrayInputStream;
import java.util.ArrayList;
import java.util.List;

/** Wraps a library's gRPC service and refuses requests above a size limit. Static functions only. */
public final class BoundedService {
    /** The maximum length of a request: names of services, types and files are far shorter. */
    static final int MAX_BYTES = 8 << 10;

    private BoundedService() {}

    public static ServerServiceDefinition of(ServerServiceDefinition service) {
        List<ServerMethodDefinition<?, ?>> methods = new ArrayList<>();
        for (ServerMethodDefinition<?, ?> method : service.getMethods()) {
            methods.add(of(method));
        }
        return InferenceService.service(service.getServiceDescriptor(), methods);
    }

    private static <Q, R> ServerMethodDefinition<?, ?> of(ServerMethodDefinition<Q, R> method) {
        MethodDescriptor<Q, R> described = method.getMethodDescriptor();
        MethodDescriptor<Parsed<Q>, R> bounded = described.toBuilder(
                        ControlRequest.marshaller(stream -> described.parseRequest(
                                new ByteArrayInputStream(ControlRequest.bytes(stream, MAX_BYTES)))),
                        described.getResponseMarshaller())
                .build();
        ServerCallHandler<Q, R> handler = method.getServerCallHandler();
        return ServerMethodDefinition.create(
                bounded,
                (ServerCall<Parsed<Q>, R> call, Metadata headers) ->
                        new Listener<>(call, handler.startCall(withPlainRequests(call), headers)));
    }

    /** Casts a call to one of plain requests. The cast is safe: listeners receive requests, and the call has none. */
    @SuppressWarnings("unchecked")
    private static <Q, R> ServerCall<Q, R> withPlainRequests(ServerCall<Parsed<Q>, R> call) {
        return (ServerCall<Q, R>) (ServerCall<?, R>) call;
    }

    /** Passes accepted requests to the library's method. */
    private static final class Listener<Q> extends ServerCall.Listener<Parsed<Q>> {
        private final ServerCall<?, ?> call;
        private final ServerCall.Listener<Q> method;
        private boolean isRefused;

        Listener(ServerCall<?, ?> call, ServerCall.Listener<Q> method) {
            this.call = call;
            this.method = method;
        }

        @Override
        public void onMessage(Parsed<Q> parsed) {
            switch (parsed) {
                case Parsed.Deferred<Q> deferred -> {
                    deferred.bytes().close();
                    refuse(GrpcErrors.malformed()); // compressed although it is short
                }
                case Parsed.Failed<Q>(InferenceException error) -> refuse(error);
                case Parsed.Ok<Q>(Q message) -> {
                    if (!isRefused) {
                        method.onMessage(message);
                    }
                }
            }
        }

        private void refuse(InferenceException error) {
            if (!isRefused) {
                isRefused = true;
                RequestFailures.log("", call.getMethodDescriptor().getFullMethodName(), error);
                GrpcErrors.fail(call, error);
            }
        }

        @Override
        public void onHalfClose() {
            if (!isRefused) {
                method.onHalfClose();
            }
        }

        @Override
        public void onReady() {
            if (!isRefused) {
                method.onReady();
            }
        }

        @Override
        public void onCancel() {
            method.onCancel();
        }

        @Override
        public void onComplete() {
            method.onComplete();
        }
    }
}
