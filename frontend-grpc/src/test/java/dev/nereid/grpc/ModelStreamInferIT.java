package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.floats;
import static dev.nereid.grpc.testing.TestFrontend.request;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import io.grpc.Metadata;
import io.grpc.Status;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiPredicate;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

final class ModelStreamInferIT {
    private static final ByteString FOUR = floats(1, 2, 3, 4);
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final InferParameter YES =
            InferParameter.newBuilder().setBoolParam(true).build();
    private static final InferParameter NO =
            InferParameter.newBuilder().setBoolParam(false).build();

    @AutoClose
    private final TestFrontend frontend = new TestFrontend();

    @AutoClose
    private final ExecutorService instance = Executors.newSingleThreadExecutor();

    private final AtomicInteger sent = new AtomicInteger();
    private final BlockingQueue<ReceivedRequest> slow = new LinkedBlockingQueue<>();
    private final BlockingQueue<ReceivedRequest> many = new LinkedBlockingQueue<>();

    @BeforeEach
    void addModels() {
        frontend.server
                .add(FakeModel.identity("fast", DataType.FP32, 64, -1))
                .add(FakeModel.identity("slow", DataType.FP32, 64, -1).responding(slow::add))
                .add(FakeModel.identity("many", DataType.FP32, 64, -1)
                        .decoupled()
                        .responding(many::add));
    }

    private static ModelInferRequest.Builder inferRequest(String model, String id) {
        return request(model, "FP32", FOUR, 1, 4).setId(id);
    }

    private static ReceivedRequest take(BlockingQueue<ReceivedRequest> calls) throws InterruptedException {
        ReceivedRequest call = calls.poll(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
        assertThat(call).as("a call").isNotNull();
        return call;
    }

    private static void respond(ReceivedRequest call, boolean last) {
        call.respond(List.of(call.input(0, "OUTPUT0")), Map.of(), last);
    }

    private static ModelStreamInferResponse response(String model, String id, InferParameter isFinal) {
        ModelInferResponse.Builder response = ModelInferResponse.newBuilder()
                .setModelName(model)
                .setModelVersion("1")
                .setId(id)
                .putParameters("triton_final_response", isFinal)
                .addRawOutputContents(FOUR);
        response.addOutputsBuilder()
                .setName("OUTPUT0")
                .setDatatype("FP32")
                .addShape(1)
                .addShape(4);
        return ModelStreamInferResponse.newBuilder().setInferResponse(response).build();
    }

    private static ModelStreamInferResponse end(String error, String model, String version, String id) {
        ModelStreamInferResponse.Builder end =
                ModelStreamInferResponse.newBuilder().setErrorMessage(error);
        end.getInferResponseBuilder()
                .setModelName(model)
                .setModelVersion(version)
                .setId(id)
                .putParameters("triton_final_response", YES);
        return end.build();
    }

    private static ModelStreamInferResponse refusal(String error, String id) {
        ModelStreamInferResponse.Builder refusal =
                ModelStreamInferResponse.newBuilder().setErrorMessage(error);
        refusal.getInferResponseBuilder().setId(id);
        return refusal.build();
    }

    @Test
    void respondsForOneToOneModelsWithTheirFinalResponse() throws Exception {
        StreamClient client =
                StreamClient.open(frontend).send(inferRequest("fast", "a")).send(inferRequest("fast", "b"));

        assertThat(client.next()).isEqualTo(response("fast", "a", YES));
        assertThat(client.next()).isEqualTo(response("fast", "b", YES));
        assertThat(client.halfClose().end()).isEqualTo(Status.OK);
        assertThat(client.rest()).isEmpty();
    }

    @Test
    void endsAStreamWithoutRequests() throws Exception {
        assertThat(StreamClient.open(frontend).halfClose().end()).isEqualTo(Status.OK);
    }

    @Test
    void respondsForOneToOneModelsInTheOrderOfRequests() throws Exception {
        StreamClient client = StreamClient.open(frontend)
                .send(inferRequest("slow", "1"))
                .send(inferRequest("fast", "2"))
                .send(inferRequest("nope", "3"))
                .send(inferRequest("slow", "4"))
                .halfClose();
        ReceivedRequest first = take(slow);
        ReceivedRequest last = take(slow);

        respond(last, true);
        respond(first, true);

        assertThat(client.end()).isEqualTo(Status.OK);
        assertThat(client.rest())
                .containsExactly(
                        response("slow", "1", YES),
                        response("fast", "2", YES),
                        refusal("Request for unknown model: 'nope' is not found", "3"),
                        response("slow", "4", YES));
    }

    @Test
    void respondsForDecoupledModelsAsTheyAreReady() throws Exception {
        StreamClient client = StreamClient.open(frontend)
                .send(inferRequest("slow", "held"))
                .send(inferRequest("many", "x"))
                .send(inferRequest("many", "y"));
        ReceivedRequest x = take(many);
        ReceivedRequest y = take(many);

        respond(y, false);
        assertThat(client.next()).isEqualTo(response("many", "y", NO));
        respond(x, false);
        assertThat(client.next()).isEqualTo(response("many", "x", NO));
        respond(x, true);
        assertThat(client.next()).isEqualTo(response("many", "x", YES));
        respond(y, true);
        assertThat(client.next()).isEqualTo(response("many", "y", YES));

        respond(take(slow), true);
        assertThat(client.next()).isEqualTo(response("slow", "held", YES));
        assertThat(client.halfClose().end()).isEqualTo(Status.OK);
    }

    @Test
    void sendsAnEmptyFinalResponseIfRequested() throws Exception {
        StreamClient client = StreamClient.open(frontend)
                .send(inferRequest("many", "quiet"))
                .send(inferRequest("many", "final").putParameters("triton_enable_empty_final_response", YES))
                .send(inferRequest("many", "versioned")
                        .setModelVersion("1")
                        .putParameters("triton_enable_empty_final_response", YES))
                .halfClose();
        take(many).end();
        take(many).end();
        take(many).end();

        assertThat(client.end()).isEqualTo(Status.OK);
        assertThat(client.rest()).containsExactly(end("", "many", "", "final"), end("", "many", "1", "versioned"));
    }

    @Test
    void sendsErrorsAsMessagesAndContinues() throws Exception {
        frontend.server.add(FakeModel.identity("refusing", DataType.FP32, 64, -1)
                .responding(call -> call.refuse(ErrorCode.INVALID_ARGUMENT, "no")));
        frontend.server.add(FakeModel.identity("failing", DataType.FP32, 64, -1)
                .on(instance)
                .responding(call -> call.fail(ErrorCode.INTERNAL, "broken")));
        StreamClient client = StreamClient.open(frontend)
                .send(inferRequest("refusing", "1"))
                .send(inferRequest("failing", "2"))
                .send(inferRequest("fast", "3").clearRawInputContents())
                .send(inferRequest("fast", "4").setModelVersion("x"))
                .send(inferRequest("fast", "5").putParameters("triton_foo", YES))
                .send(inferRequest("fast", "6"))
                .halfClose();

        assertThat(client.end()).isEqualTo(Status.OK);
        assertThat(client.rest())
                .containsExactly(
                        refusal("no", "1"),
                        end("broken", "failing", "", "2"),
                        refusal("unable to find data for input tensor 'INPUT0' for model 'fast' in request.", "3"),
                        refusal(
                                "failed to get model version from specified version string 'x' (details: stol),"
                                        + " version should be an integral value > 0",
                                "4"),
                        refusal(
                                "parameter keys starting with 'triton_' are reserved for Triton usage. Only the"
                                        + " following keys starting with 'triton_' are allowed:"
                                        + " triton_enable_empty_final_response",
                                "5"),
                        response("fast", "6", YES));
    }

    @Test
    void sendsAnErrorAfterResponses() throws Exception {
        StreamClient client =
                StreamClient.open(frontend).send(inferRequest("many", "m")).halfClose();
        ReceivedRequest call = take(many);

        respond(call, false);
        call.fail(ErrorCode.UNAVAILABLE, "gone");

        assertThat(client.end()).isEqualTo(Status.OK);
        assertThat(client.rest()).containsExactly(response("many", "m", NO), end("gone", "many", "", "m"));
    }

    @Test
    void continuesAfterAFailedResponse() throws Exception {
        StreamClient client =
                StreamClient.open(frontend).send(inferRequest("many", "m")).halfClose();
        ReceivedRequest call = take(many);

        call.respondWithError(ErrorCode.UNAVAILABLE, "not this one");
        respond(call, false);
        call.respondWithError(ErrorCode.INTERNAL, "nor this");
        respond(call, true);

        assertThat(client.end()).isEqualTo(Status.OK);
        assertThat(client.rest())
                .containsExactly(
                        failed("not this one"),
                        response("many", "m", NO),
                        failed("nor this"),
                        response("many", "m", YES));
    }

    private static ModelStreamInferResponse failed(String error) {
        ModelStreamInferResponse.Builder message = end(error, "many", "", "m").toBuilder();
        message.getInferResponseBuilder().putParameters("triton_final_response", NO);
        return message.build();
    }

    @Test
    void endsAStrictStreamWithTheFirstFailedResponse() throws Exception {
        StreamClient client = StreamClient.strict(frontend).send(inferRequest("many", "m"));
        ReceivedRequest call = take(many);

        call.respondWithError(ErrorCode.NOT_FOUND, "nothing here");

        Status end = client.end();
        assertThat(end.getCode()).isEqualTo(Status.Code.NOT_FOUND);
        assertThat(end.getDescription()).isEqualTo("nothing here");
        assertThat(client.rest()).isEmpty();
        assertThat(call.awaitCancel(TIMEOUT)).isTrue();
    }

    @Test
    void continuesAStrictStreamAfterRefusals() throws Exception {
        ModelInferRequest.Builder reserved = inferRequest("slow", "reserved");
        reserved.putParameters("triton_x", YES);
        StreamClient client = StreamClient.strict(frontend)
                .send(inferRequest("nope", "unknown"))
                .send(inferRequest("", ""))
                .send(reserved)
                .send(inferRequest("slow", "refused by the server"));
        take(slow).refuse(ErrorCode.UNAVAILABLE, "too many");
        client.send(inferRequest("slow", "good"));
        respond(take(slow), true);

        List<ModelStreamInferResponse> received = List.of(client.next(), client.next(), client.next(), client.next());

        assertThat(received)
                .extracting(response -> response.getInferResponse().getId())
                .containsExactly("unknown", "", "reserved", "refused by the server");
        assertThat(received.getFirst()).isEqualTo(refusal("Request for unknown model: 'nope' is not found", "unknown"));
        assertThat(received.getLast()).isEqualTo(refusal("too many", "refused by the server"));
        assertThat(client.next()).isEqualTo(response("slow", "good", YES));
        assertThat(client.halfClose().end().getCode()).isEqualTo(Status.Code.OK);
    }

    @Test
    void endsAStrictStreamWithTheFirstError() throws Exception {
        StreamClient client =
                StreamClient.strict(frontend).send(inferRequest("slow", "1")).send(inferRequest("many", "2"));
        ReceivedRequest waiting = take(slow);

        take(many).fail(ErrorCode.NOT_FOUND, "nothing here");

        Status end = client.end();
        assertThat(end.getCode()).isEqualTo(Status.Code.NOT_FOUND);
        assertThat(end.getDescription()).isEqualTo("nothing here");
        assertThat(client.rest()).isEmpty();
        assertThat(waiting.awaitCancel(TIMEOUT)).isTrue();
    }

    @Test
    void cancelsAllRequestsOfACancelledStream() throws Exception {
        StreamClient client =
                StreamClient.open(frontend).send(inferRequest("slow", "1")).send(inferRequest("many", "2"));
        ReceivedRequest one = take(slow);
        ReceivedRequest other = take(many);
        respond(other, false);
        client.next();

        client.cancel();

        assertThat(one.awaitCancel(TIMEOUT)).isTrue();
        assertThat(other.awaitCancel(TIMEOUT)).isTrue();
        respond(other, false);
        frontend.awaitNoMemory();
    }

    @Test
    void releasesUnwrittenResponsesOfACancelledStream() throws Exception {
        StreamClient client =
                StreamClient.open(frontend).send(inferRequest("slow", "1")).send(inferRequest("fast", "2"));
        take(slow);
        TestFrontend.await(() -> frontend.server.requests().size() == 2);

        client.cancel();

        frontend.awaitNoMemory();
    }

    /** A model that sends responses of a given size as long as the test decides, on the one thread of its instance. */
    private FakeModel flood(int bytes, BiPredicate<ReceivedRequest, Integer> continues) {
        Tensor tensor = Tensor.of(DataType.UINT8, Shape.of(bytes), MemorySegment.ofArray(new byte[bytes]));
        return FakeModel.identity("flood", DataType.FP32, 64, -1)
                .decoupled()
                .on(instance)
                .responding(call -> {
                    int count = 0;
                    while (continues.test(call, count)) {
                        call.respond(
                                List.of(new NamedTensor("OUTPUT0", tensor)),
                                Map.of("n", new ParameterValue.Int(count++)),
                                false);
                        sent.incrementAndGet();
                    }
                    call.end();
                });
    }

    private static void assertInOrder(List<ModelStreamInferResponse> responses, int count) {
        assertThat(responses)
                .extracting(response ->
                        response.getInferResponse().getParametersOrThrow("n").getInt64Param())
                .containsExactlyElementsOf(LongStream.range(0, count).boxed().toList());
    }

    @Test
    void endsStreamsOfClientsThatDoNotReadAndServesTheOthers() throws Exception {
        int each = 64 << 10;
        AtomicInteger held = new AtomicInteger();
        frontend.server.add(flood(each, (call, count) -> {
            held.accumulateAndGet(call.openResponses(), Math::max);
            return call.request().id().equals("endless") ? !call.isCancelled() : count == 0;
        }));
        StreamClient deaf = StreamClient.open(frontend, new Metadata(), false).send(inferRequest("flood", "endless"));
        TestFrontend.await(() -> sent.get() > 10);
        StreamClient other = StreamClient.open(frontend)
                .send(inferRequest("flood", "modest"))
                .halfClose();

        assertThat(other.next().getInferResponse().getId()).isEqualTo("modest");
        assertThat(other.end()).isEqualTo(Status.OK);
        assertThat((long) held.get() * each).isBetween(60L << 20, 65L << 20);
        assertThat(frontend.server.requests().getFirst().isCancelled()).isTrue();
        deaf.read(Integer.MAX_VALUE);
        Status end = deaf.end();
        assertThat(end.getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(end.getDescription()).startsWith("the client reads the stream too slowly: 67108864 bytes or more");
        List<ModelStreamInferResponse> read = deaf.rest();
        assertInOrder(read, read.size());
    }

    @Test
    void delaysNoModelWhoseClientReadsLate() throws Exception {
        int count = 10_000;
        try (TestFrontend narrow = new TestFrontend(grpc -> {
            grpc.flowControlWindowBytes = 1 << 20;
            grpc.maxWaitingResponses = 10;
        })) {
            narrow.server.add(flood(1024, (_, given) -> given < count));
            StreamClient client = StreamClient.open(narrow, new Metadata(), false)
                    .send(inferRequest("flood", "f"))
                    .halfClose();
            TestFrontend.await(() -> sent.get() == count);

            client.read(count + 1);

            assertThat(client.end()).isEqualTo(Status.OK);
            assertInOrder(client.rest(), count);
        }
    }

    @Test
    void writesAllToAClientThatReadsOneByOne() throws Exception {
        int count = 400;
        frontend.server.add(flood(100_000, (_, given) -> given < count));
        StreamClient client = StreamClient.open(frontend, new Metadata(), false)
                .send(inferRequest("flood", "f"))
                .halfClose();

        List<ModelStreamInferResponse> responses = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            client.read(1);
            responses.add(client.next());
        }

        assertInOrder(responses, count);
        client.read(1);
        assertThat(client.end()).isEqualTo(Status.OK);
    }

    @Test
    void writesResponsesEachOfWhichIsMoreThanMayWait() throws Exception {
        int bytes = 65 << 20;
        frontend.server.add(flood(bytes, (_, given) -> given < 2));
        StreamClient client =
                StreamClient.open(frontend).send(inferRequest("flood", "f")).halfClose();

        assertThat(client.end()).isEqualTo(Status.OK);
        List<ModelStreamInferResponse> responses = client.rest();
        assertInOrder(responses, 2);
        assertThat(responses)
                .allSatisfy(response -> assertThat(response.getInferResponse()
                                .getRawOutputContents(0)
                                .size())
                        .isEqualTo(bytes));
    }

    @Test
    void pausesReadingWhileTheClientDoesNotRead() throws Exception {
        int count = 2000;
        try (TestFrontend narrow = new TestFrontend(grpc -> {
            grpc.flowControlWindowBytes = 1 << 20;
            grpc.maxWaitingResponses = 10;
        })) {
            narrow.server.add(FakeModel.identity("fast", DataType.FP32, 64, -1));
            ByteString kilobyte = floats(new float[256]);
            StreamClient client = StreamClient.open(narrow, new Metadata(), false);
            for (int i = 0; i < count; i++) {
                client.send(request("fast", "FP32", kilobyte, 1, 256).setId("" + i));
            }
            TestFrontend.await(() -> narrow.server.requests().size() > 10);

            assertThat(narrow.memory.buffersInUse()).isLessThanOrEqualTo(20);
            assertThat(narrow.server.requests().size()).isLessThan(900);

            client.halfClose().read(count + 1);
            assertThat(client.end()).isEqualTo(Status.OK);
            assertThat(client.rest())
                    .extracting(response -> response.getInferResponse().getId())
                    .containsExactlyElementsOf(
                            IntStream.range(0, count).mapToObj(String::valueOf).toList());
        }
    }
}
