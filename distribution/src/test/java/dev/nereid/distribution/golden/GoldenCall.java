package dev.nereid.distribution.golden;

import com.google.protobuf.ExtensionRegistry;
import com.google.protobuf.Message;
import com.google.protobuf.TextFormat;
import inference.CudaSharedMemoryRegisterRequest;
import inference.CudaSharedMemoryRegisterResponse;
import inference.CudaSharedMemoryStatusRequest;
import inference.CudaSharedMemoryStatusResponse;
import inference.CudaSharedMemoryUnregisterRequest;
import inference.CudaSharedMemoryUnregisterResponse;
import inference.GRPCInferenceServiceGrpc;
import inference.InferParameter;
import inference.ModelConfigRequest;
import inference.ModelConfigResponse;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelMetadataRequest;
import inference.ModelMetadataResponse;
import inference.ModelReadyRequest;
import inference.ModelReadyResponse;
import inference.ModelStatisticsRequest;
import inference.ModelStatisticsResponse;
import inference.RepositoryIndexRequest;
import inference.RepositoryIndexResponse;
import inference.RepositoryModelLoadRequest;
import inference.RepositoryModelLoadResponse;
import inference.RepositoryModelUnloadRequest;
import inference.RepositoryModelUnloadResponse;
import inference.ServerLiveRequest;
import inference.ServerLiveResponse;
import inference.ServerMetadataRequest;
import inference.ServerMetadataResponse;
import inference.ServerReadyRequest;
import inference.ServerReadyResponse;
import inference.SystemSharedMemoryRegisterRequest;
import inference.SystemSharedMemoryRegisterResponse;
import inference.SystemSharedMemoryStatusRequest;
import inference.SystemSharedMemoryStatusResponse;
import inference.SystemSharedMemoryUnregisterRequest;
import inference.SystemSharedMemoryUnregisterResponse;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * A recorded call that this server supports: sends recorded requests and compares the responses.
 *
 * @param <Q> the type of the request
 * @param <R> the type of the response
 * @param request an empty request
 * @param response an empty response
 * @param method the method
 */
record GoldenCall<Q extends Message, R extends Message>(Q request, R response, MethodDescriptor<Q, R> method) {
    private static final Pattern DEADLINE = Pattern.compile("deadline of (\\d+) ms.*");
    private static final Pattern RAW = Pattern.compile("raw call /(\\S+)");
    private static final Pattern ESCAPE = Pattern.compile("\\\\x([0-9a-f]{2})");
    private static final String OK = "OK  (";
    /** Fields of model statistics that differ between any two servers. */
    private static final Pattern TIMES = Pattern.compile("(?m)^ *(ns|last_inference): \\d+$");

    private static final long TIMEOUT_MILLIS = 60_000;

    /** Parameters that the reference's identity backend adds to every response for demonstration. */
    private static final List<String> DEMONSTRATION = List.of("param0", "param1", "param2", "param3");

    private static final Map<String, GoldenCall<?, ?>> BY_TYPE = List.of(
                    of(
                            ServerLiveRequest.getDefaultInstance(),
                            ServerLiveResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getServerLiveMethod()),
                    of(
                            ServerReadyRequest.getDefaultInstance(),
                            ServerReadyResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getServerReadyMethod()),
                    of(
                            ModelReadyRequest.getDefaultInstance(),
                            ModelReadyResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getModelReadyMethod()),
                    of(
                            ServerMetadataRequest.getDefaultInstance(),
                            ServerMetadataResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getServerMetadataMethod()),
                    of(
                            ModelMetadataRequest.getDefaultInstance(),
                            ModelMetadataResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getModelMetadataMethod()),
                    of(
                            ModelConfigRequest.getDefaultInstance(),
                            ModelConfigResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getModelConfigMethod()),
                    of(
                            ModelStatisticsRequest.getDefaultInstance(),
                            ModelStatisticsResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getModelStatisticsMethod()),
                    of(
                            ModelInferRequest.getDefaultInstance(),
                            ModelInferResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getModelInferMethod()),
                    of(
                            RepositoryIndexRequest.getDefaultInstance(),
                            RepositoryIndexResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getRepositoryIndexMethod()),
                    of(
                            RepositoryModelLoadRequest.getDefaultInstance(),
                            RepositoryModelLoadResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getRepositoryModelLoadMethod()),
                    of(
                            RepositoryModelUnloadRequest.getDefaultInstance(),
                            RepositoryModelUnloadResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getRepositoryModelUnloadMethod()),
                    of(
                            SystemSharedMemoryStatusRequest.getDefaultInstance(),
                            SystemSharedMemoryStatusResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getSystemSharedMemoryStatusMethod()),
                    of(
                            SystemSharedMemoryRegisterRequest.getDefaultInstance(),
                            SystemSharedMemoryRegisterResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getSystemSharedMemoryRegisterMethod()),
                    of(
                            SystemSharedMemoryUnregisterRequest.getDefaultInstance(),
                            SystemSharedMemoryUnregisterResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getSystemSharedMemoryUnregisterMethod()),
                    of(
                            CudaSharedMemoryStatusRequest.getDefaultInstance(),
                            CudaSharedMemoryStatusResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getCudaSharedMemoryStatusMethod()),
                    of(
                            CudaSharedMemoryRegisterRequest.getDefaultInstance(),
                            CudaSharedMemoryRegisterResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getCudaSharedMemoryRegisterMethod()),
                    of(
                            CudaSharedMemoryUnregisterRequest.getDefaultInstance(),
                            CudaSharedMemoryUnregisterResponse.getDefaultInstance(),
                            GRPCInferenceServiceGrpc.getCudaSharedMemoryUnregisterMethod()),
                    of(
                            HealthCheckRequest.getDefaultInstance(),
                            HealthCheckResponse.getDefaultInstance(),
                            HealthGrpc.getCheckMethod()))
            .stream()
            .collect(Collectors.toMap(
                    call -> call.request().getDescriptorForType().getName(), Function.identity()));

    private static <Q extends Message, R extends Message> GoldenCall<Q, R> of(
            Q request, R response, MethodDescriptor<Q, R> method) {
        return new GoldenCall<>(request, response, method);
    }

    /** Returns whether a case is one call with one response of a kind that this server supports. */
    static boolean isOurs(GoldenCase one) {
        return BY_TYPE.containsKey(one.type()) || RAW.matcher(one.title()).matches();
    }

    /** Returns the name of the model that a case is about; empty for none. */
    static Optional<String> model(GoldenCase one) throws TextFormat.ParseException {
        GoldenCall<?, ?> call = BY_TYPE.get(one.type());
        if (call == null || !one.type().startsWith("Model")) {
            return Optional.empty();
        }
        Message message = call.parseRequest(one);
        for (String field : List.of("model_name", "name")) {
            var descriptor = message.getDescriptorForType().findFieldByName(field);
            if (descriptor != null) {
                return Optional.of((String) message.getField(descriptor));
            }
        }
        return Optional.empty();
    }

    /** Sends a recorded request, and returns how the response differs from the record; empty if it does not. */
    static Optional<String> difference(GoldenCase one, Channel channel) throws TextFormat.ParseException {
        Matcher raw = RAW.matcher(one.title());
        String response;
        if (raw.matches()) {
            response = raw(raw.group(1), one.request(), channel);
        } else {
            GoldenCall<?, ?> call = BY_TYPE.get(one.type());
            response = call.send(one, channel);
            if (one.response().startsWith(OK) && response.startsWith(OK)) {
                return call.differenceOfMessages(one.response(), response);
            }
        }
        return response.equals(one.response()) ? Optional.empty() : Optional.of(describe(one.response(), response));
    }

    private String send(GoldenCase one, Channel channel) throws TextFormat.ParseException {
        Matcher deadline = DEADLINE.matcher(one.title());
        long millis = deadline.matches() ? Long.parseLong(deadline.group(1)) : TIMEOUT_MILLIS;
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(millis, TimeUnit.MILLISECONDS);
        try {
            R response = ClientCalls.blockingUnaryCall(channel, method, options, parseRequest(one));
            return OK + response.getDescriptorForType().getName() + ")\n"
                    + TextFormat.printer().printToString(response);
        } catch (StatusRuntimeException e) {
            // The client itself creates this text.
            return e.getStatus().getCode() == Status.Code.DEADLINE_EXCEEDED
                    ? "DEADLINE_EXCEEDED (4): Deadline Exceeded"
                    : text(e.getStatus());
        }
    }

    private Optional<String> differenceOfMessages(String expected, String got) throws TextFormat.ParseException {
        Message recorded = withoutDemonstration(parseResponse(expected));
        Message actual = parseResponse(got);
        return recorded.equals(actual)
                ? Optional.empty()
                : Optional.of(describe(recorded.toString(), actual.toString()));
    }

    /** Removes the parameters that only the reference's identity backend adds. */
    static Message withoutDemonstration(Message message) {
        if (!(message instanceof ModelInferResponse response)) {
            return message;
        }
        ModelInferResponse.Builder stripped = response.toBuilder();
        Map<String, InferParameter> parameters = response.getParametersMap();
        DEMONSTRATION.stream().filter(parameters::containsKey).forEach(stripped::removeParameters);
        return stripped.build();
    }

    private Q parseRequest(GoldenCase one) throws TextFormat.ParseException {
        return parse(request, one.request());
    }

    private Message parseResponse(String text) throws TextFormat.ParseException {
        String message = text.substring(text.indexOf('\n') + 1);
        boolean timed = response instanceof ModelStatisticsResponse;
        return parse(response, timed ? TIMES.matcher(message).replaceAll("") : message);
    }

    @SuppressWarnings("unchecked") // A message's builder builds messages of its type.
    private static <T extends Message> T parse(T empty, String text) throws TextFormat.ParseException {
        Message.Builder message = empty.newBuilderForType();
        TextFormat.getParser().merge(text, ExtensionRegistry.getEmptyRegistry(), message);
        return (T) message.build();
    }

    private static String raw(String method, String bytes, Channel channel) {
        MethodDescriptor<byte[], byte[]> descriptor = MethodDescriptor.<byte[], byte[]>newBuilder()
                .setType(MethodDescriptor.MethodType.UNARY)
                .setFullMethodName(method)
                .setRequestMarshaller(new Bytes())
                .setResponseMarshaller(new Bytes())
                .build();
        try {
            ClientCalls.blockingUnaryCall(
                    channel,
                    descriptor,
                    CallOptions.DEFAULT.withDeadlineAfter(TIMEOUT_MILLIS, TimeUnit.MILLISECONDS),
                    unescaped(bytes));
            return "OK";
        } catch (StatusRuntimeException e) {
            return text(e.getStatus());
        }
    }

    /** Reads bytes as the record writes them: {@code b'\xff…'}. */
    private static byte[] unescaped(String literal) {
        String text = literal.substring(2, literal.length() - 1);
        return ESCAPE.matcher(text)
                .replaceAll(escape ->
                        Matcher.quoteReplacement(String.valueOf((char) Integer.parseInt(escape.group(1), 16))))
                .getBytes(StandardCharsets.ISO_8859_1);
    }

    private static String text(Status status) {
        String description = status.getDescription();
        return status.getCode() + " (" + status.getCode().value() + "): " + (description == null ? "" : description);
    }

    private static String describe(String expected, String got) {
        return "the reference says\n" + expected + "\nthis server says\n" + got;
    }

    /** Bytes as a message. */
    private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
        @Override
        public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
