package dev.nereid.grpc;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.grpc.testing.TestFrontend;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelStreamInferResponse;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientResponseObserver;
import io.grpc.stub.MetadataUtils;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The client side of one stream. Safe for use by any thread, except for sending requests. */
final class StreamClient implements ClientResponseObserver<ModelInferRequest, ModelStreamInferResponse> {
    private static final long TIMEOUT_SECONDS = 20;

    private final BlockingQueue<ModelStreamInferResponse> responses = new LinkedBlockingQueue<>();
    private final CompletableFuture<Status> end = new CompletableFuture<>();
    private final boolean reads;
    private @Nullable ClientCallStreamObserver<ModelInferRequest> requests;

    private StreamClient(boolean reads) {
        this.reads = reads;
    }

    static StreamClient open(TestFrontend frontend) {
        return open(frontend, new Metadata(), true);
    }

    /** Opens a stream that the first error response of a model ends. */
    static StreamClient strict(TestFrontend frontend) {
        Metadata headers = new Metadata();
        headers.put(Metadata.Key.of("triton_grpc_error", Metadata.ASCII_STRING_MARSHALLER), "true");
        return open(frontend, headers, true);
    }

    /**
     * Opens a stream.
     *
     * @param reads whether responses are read before {@link #read} is called
     */
    static StreamClient open(TestFrontend frontend, Metadata headers, boolean reads) {
        StreamClient client = new StreamClient(reads);
        GRPCInferenceServiceGrpc.newStub(frontend.channel)
                .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers))
                .modelStreamInfer(client);
        return client;
    }

    @Override
    public void beforeStart(ClientCallStreamObserver<ModelInferRequest> stream) {
        requests = stream;
        if (!reads) {
            stream.disableAutoRequestWithInitial(0);
        }
    }

    @Override
    public void onNext(ModelStreamInferResponse response) {
        responses.add(response);
    }

    @Override
    public void onError(Throwable failure) {
        end.complete(Status.fromThrowable(failure));
    }

    @Override
    public void onCompleted() {
        end.complete(Status.OK);
    }

    private ClientCallStreamObserver<ModelInferRequest> stream() {
        return requireNonNull(requests, "requests");
    }

    StreamClient send(ModelInferRequest request) {
        stream().onNext(request);
        return this;
    }

    StreamClient send(ModelInferRequest.Builder request) {
        return send(request.build());
    }

    StreamClient halfClose() {
        stream().onCompleted();
        return this;
    }

    void cancel() {
        stream().cancel("the test is over", null);
    }

    void read(int count) {
        stream().request(count);
    }

    /** Returns the next response. */
    ModelStreamInferResponse next() throws InterruptedException {
        ModelStreamInferResponse response = responses.poll(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        assertThat(response).as("a response").isNotNull();
        return response;
    }

    /** Returns the responses that were not returned yet. */
    List<ModelStreamInferResponse> rest() {
        List<ModelStreamInferResponse> rest = new ArrayList<>();
        responses.drainTo(rest);
        return rest;
    }

    /** Waits until the stream ends. */
    Status end() throws Exception {
        return end.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }
}
