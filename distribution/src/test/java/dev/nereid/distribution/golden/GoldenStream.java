package dev.nereid.distribution.golden;

import com.google.protobuf.ExtensionRegistry;
import com.google.protobuf.TextFormat;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import io.grpc.Channel;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A recorded stream: all requests, half-close, and then all responses.
 *
 * @param requests the requests
 * @param responses the responses, without the parameters that the reference's identity backend adds for demonstration
 * @param end how the stream ended
 */
record GoldenStream(List<ModelInferRequest> requests, List<ModelStreamInferResponse> responses, String end) {
    private static final String SEPARATOR = "\n---\n";
    private static final String END = "-- stream ended";
    private static final Pattern ERROR =
            Pattern.compile("error_message: (\"(?:[^\"\\\\]|\\\\.)*\")\n(.*)", Pattern.DOTALL);
    private static final Pattern DEADLINE = Pattern.compile("stream deadline ([0-9.]+) s .*");
    private static final double TIMEOUT_SECONDS = 60;

    /** Returns whether a case is a stream. */
    static boolean isStream(GoldenCase one) {
        return one.response().contains(END);
    }

    /** Reads a case. */
    static GoldenStream of(GoldenCase one) throws TextFormat.ParseException {
        List<ModelInferRequest> requests = new ArrayList<>();
        String text = one.type() + "\n" + one.request();
        for (String request : text.isBlank() ? new String[0] : text.split(SEPARATOR, -1)) {
            ModelInferRequest.Builder message = ModelInferRequest.newBuilder();
            TextFormat.getParser().merge(request, ExtensionRegistry.getEmptyRegistry(), message);
            requests.add(message.build());
        }
        String[] parts = one.response().split(SEPARATOR, -1);
        List<ModelStreamInferResponse> responses = new ArrayList<>();
        for (int i = 0; i < parts.length - 1; i++) {
            responses.add(response(parts[i]));
        }
        return new GoldenStream(requests, responses, parts[parts.length - 1]);
    }

    /** Reads a response, which the record writes without the braces around its inner message. */
    private static ModelStreamInferResponse response(String text) throws TextFormat.ParseException {
        String outer = "";
        String inner = text;
        Matcher error = ERROR.matcher(text);
        if (error.matches()) {
            outer = "error_message: " + error.group(1) + "\n";
            inner = error.group(2);
        }
        ModelStreamInferResponse.Builder response = ModelStreamInferResponse.newBuilder();
        TextFormat.getParser()
                .merge(outer + "infer_response {\n" + inner + "\n}", ExtensionRegistry.getEmptyRegistry(), response);
        ModelInferResponse stripped = (ModelInferResponse) GoldenCall.withoutDemonstration(response.getInferResponse());
        return response.setInferResponse(stripped).build();
    }

    /** Sends the requests, and returns how the responses differ from the record; empty if they do not. */
    static Optional<String> difference(GoldenCase one, Channel channel)
            throws TextFormat.ParseException, InterruptedException {
        GoldenStream expected = of(one);
        Matcher deadline = DEADLINE.matcher(one.title());
        double seconds = deadline.matches() ? Double.parseDouble(deadline.group(1)) : TIMEOUT_SECONDS;
        GoldenStream got = expected.replay(channel, (long) (seconds * 1000));
        return expected.equals(got)
                ? Optional.empty()
                : Optional.of("the reference says\n" + expected + "\nthis server says\n" + got);
    }

    private GoldenStream replay(Channel channel, long millis) throws InterruptedException {
        List<ModelStreamInferResponse> received = new CopyOnWriteArrayList<>();
        CompletableFuture<String> ended = new CompletableFuture<>();
        StreamObserver<ModelInferRequest> stream = GRPCInferenceServiceGrpc.newStub(channel)
                .withDeadlineAfter(millis, TimeUnit.MILLISECONDS)
                .modelStreamInfer(new StreamObserver<>() {
                    @Override
                    public void onNext(ModelStreamInferResponse response) {
                        received.add(response);
                    }

                    @Override
                    public void onError(Throwable failure) {
                        ended.complete(describe(Status.fromThrowable(failure)));
                    }

                    @Override
                    public void onCompleted() {
                        ended.complete(END + ": OK ''");
                    }
                });
        requests.forEach(stream::onNext);
        stream.onCompleted();
        try {
            return new GoldenStream(requests, received, ended.get(millis + 10_000, TimeUnit.MILLISECONDS));
        } catch (ExecutionException | TimeoutException e) {
            throw new IllegalStateException("the stream did not end", e);
        }
    }

    private static String describe(Status status) {
        boolean isLate = status.getCode() == Status.Code.DEADLINE_EXCEEDED;
        return END + " with " + status.getCode() + " (" + status.getCode().value() + "): "
                + (isLate ? "Deadline Exceeded" : status.getDescription()); // the client words this one
    }
}
