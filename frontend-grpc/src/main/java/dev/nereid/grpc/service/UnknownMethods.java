package dev.nereid.grpc.service;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.RefusalCause;
import dev.nereid.api.Refusals;
import dev.nereid.grpc.wire.RequestFailures;
import dev.nereid.spi.ErrorCode;
import io.grpc.HandlerRegistry;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerMethodDefinition;
import java.io.InputStream;
import org.jspecify.annotations.Nullable;

/** Refuses calls of unknown methods. Immutable. */
public final class UnknownMethods extends HandlerRegistry {
    private static final MethodDescriptor.Marshaller<InputStream> BYTES = new MethodDescriptor.Marshaller<>() {
        @Override
        public InputStream stream(InputStream value) {
            return value;
        }

        @Override
        public InputStream parse(InputStream stream) {
            return InputStream.nullInputStream();
        }
    };

    private final Refusals refusals;

    public UnknownMethods(Refusals refusals) {
        this.refusals = refusals;
    }

    @Override
    public ServerMethodDefinition<?, ?> lookupMethod(String methodName, @Nullable String authority) {
        InferenceException error = InferenceException.refusal(
                ErrorCode.UNSUPPORTED, RefusalCause.UNKNOWN_PATH, "Method not found: " + Quoted.text(methodName));
        MethodDescriptor<InputStream, InputStream> method = MethodDescriptor.newBuilder(BYTES, BYTES)
                .setType(MethodDescriptor.MethodType.UNKNOWN)
                .setFullMethodName(methodName)
                .build();
        return ServerMethodDefinition.create(
                method,
                (ServerCall<InputStream, InputStream> call, Metadata _) ->
                        RequestFailures.refuse(call, refusals, error));
    }
}
