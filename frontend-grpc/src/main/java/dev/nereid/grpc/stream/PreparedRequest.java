package dev.nereid.grpc.stream;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.grpc.wire.AssembledRequest;
import dev.nereid.grpc.wire.CallContext;
import dev.nereid.grpc.wire.InferMessage;
import dev.nereid.grpc.wire.RequestNames;
import org.jspecify.annotations.Nullable;

/**
 * A parsed request of a stream: an assembled request or its error.
 *
 * @param bytes the length of the message
 * @param assembled the assembled request; its memory belongs to the holder
 * @param error the error; {@code null} if there is a request
 */
record PreparedRequest(
        RequestNames names,
        boolean isDecoupled,
        int bytes,
        @Nullable AssembledRequest assembled,
        @Nullable InferenceException error) {
    /** Prepares a request in the context of its call. The message is not needed afterwards. */
    static PreparedRequest of(InferMessage message, StreamContext stream, CallContext context) {
        RequestNames names = message.names();
        int bytes = message.bytes().length();
        boolean isDecoupled = false;
        try {
            stream.checkAcceptsRequests();
            ModelRef model = ModelRef.parse(names.model(), names.version());
            isDecoupled = stream.server().models().metadata(model).decoupled();
            AssembledRequest assembled = stream.dependencies().assembler().assemble(message, model, context);
            return new PreparedRequest(names, isDecoupled, bytes, assembled, null);
        } catch (InferenceException error) {
            return new PreparedRequest(names, isDecoupled, bytes, null, error);
        }
    }
}
