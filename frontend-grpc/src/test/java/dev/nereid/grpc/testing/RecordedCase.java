package dev.nereid.grpc.testing;

import com.google.protobuf.ExtensionRegistry;
import com.google.protobuf.Message;
import com.google.protobuf.Struct;
import com.google.protobuf.TextFormat;
import com.google.protobuf.util.JsonFormat;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferResponse;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.MethodDescriptor;
import io.grpc.ServiceDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A recorded unary call and its response. Immutable.
 *
 * @param file the file of the recording
 * @param number its number in the file
 * @param title the title of the case
 * @param request the type of the request, then the request in text format
 * @param response a status and a message, or the type of the response and the response in text format
 */
public record RecordedCase(String file, int number, String title, String request, String response) {
    private static final String OK = "OK  (";

    /** Reads all recorded calls with one request and one response, except those recorded in part. */
    public static List<RecordedCase> read(Path recording) throws IOException {
        try (Stream<String> lines = Files.lines(recording)) {
            return lines.map(RecordedCase::parse).filter(RecordedCase::isUnary).toList();
        }
    }

    private static RecordedCase parse(String line) {
        Struct.Builder json = Struct.newBuilder();
        try {
            JsonFormat.parser().merge(line, json);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return new RecordedCase(
                text(json, "file"),
                (int) json.getFieldsOrThrow("n").getNumberValue(),
                text(json, "title"),
                text(json, "request"),
                text(json, "response"));
    }

    private static String text(Struct.Builder json, String name) {
        return json.getFieldsOrThrow(name).getStringValue();
    }

    private boolean isUnary() {
        return request.matches("(?s)\\w+Request\\n.*")
                && response.matches("(?s)(OK  \\(\\w+Response\\)\\n|[A-Z_]+ \\(\\d+\\): ).*")
                && !(request + response).contains(" characters in all>");
    }

    /** Returns the name of the method that is called. */
    public String method() {
        return request.substring(0, request.indexOf("Request\n"));
    }

    /** Returns the request. */
    public Message message() {
        return message(descriptor(), request.substring(request.indexOf('\n') + 1));
    }

    private MethodDescriptor<?, ?> descriptor() {
        ServiceDescriptor service = method().equals("HealthCheck")
                ? HealthGrpc.getServiceDescriptor()
                : GRPCInferenceServiceGrpc.getServiceDescriptor();
        String name = method().equals("HealthCheck") ? "Check" : method();
        return service.getMethods().stream()
                .filter(method -> name.equals(method.getBareMethodName()))
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("method: " + name));
    }

    private static Message message(MethodDescriptor<?, ?> method, String text) {
        Message.Builder message = prototype(method.getRequestMarshaller()).newBuilderForType();
        return parsed(message, text);
    }

    private static Message prototype(MethodDescriptor.Marshaller<?> marshaller) {
        return (Message) marshaller.parse(new ByteArrayInputStream(new byte[0]));
    }

    private static Message parsed(Message.Builder message, String text) {
        try {
            TextFormat.merge(text, ExtensionRegistry.getEmptyRegistry(), message);
        } catch (TextFormat.ParseException e) {
            throw new IllegalStateException(text, e);
        }
        return message.build();
    }

    /** Makes the call. Returns how the response differs from the recorded one, if it does. */
    public Optional<String> replay(Channel channel, CallOptions options) {
        String expected = response;
        String actual = call(channel, descriptor(), options);
        if (response.startsWith(OK)) {
            Message message = parsed(
                    prototype(descriptor().getResponseMarshaller()).newBuilderForType(),
                    response.substring(response.indexOf('\n') + 1));
            expected = OK + TextFormat.printer().printToString(withoutDemonstration(message));
        }
        return actual.equals(expected)
                ? Optional.empty()
                : Optional.of("expected " + expected + "\nbut was  " + actual);
    }

    @SuppressWarnings("unchecked")
    private String call(Channel channel, MethodDescriptor<?, ?> method, CallOptions options) {
        try {
            Message received = ClientCalls.blockingUnaryCall(
                    channel, (MethodDescriptor<Message, Message>) method, options, message());
            return OK + TextFormat.printer().printToString(received);
        } catch (StatusRuntimeException failure) {
            return failure.getStatus().getCode() + " ("
                    + failure.getStatus().getCode().value() + "): "
                    + failure.getStatus().getDescription();
        }
    }

    /** Removes the parameters that only the recorded identity backend adds to its responses. */
    private static Message withoutDemonstration(Message message) {
        if (!(message instanceof ModelInferResponse inferResponse)) {
            return message;
        }
        ModelInferResponse.Builder rest = inferResponse.toBuilder();
        for (int i = 0; i < 4; i++) {
            rest.removeParameters("param" + i);
        }
        return rest.build();
    }

    @Override
    public String toString() {
        return file + " " + number + " " + title;
    }
}
