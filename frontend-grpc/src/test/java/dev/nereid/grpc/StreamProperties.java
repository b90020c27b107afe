package dev.nereid.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.nereid.api.SharedMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ParameterValue;
import dev.nereid.testkit.FakeCall;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** Whatever happens when, every request is answered to its end, once, in the order that is promised. */
final class StreamProperties {
    private static final int REQUESTS = 60;
    private static final ByteString ONE = Frontend.floats(1);

    /** A stream to fake models whose calls wait to be answered. */
    private static final class Harness {
        final LeakCheckingMemory memory = new LeakCheckingMemory();
        final FakeInferenceServer server = new FakeInferenceServer(memory);
        final Queue<FakeCall> calls = new ConcurrentLinkedQueue<>();
        final RecordedStream stream = new RecordedStream();
        final ModelStreamInferCall call;

        Harness() {
            server.add(FakeModel.identity("plain", DataType.FP32, 0, -1).answering(calls::add));
            server.add(
                    FakeModel.identity("many", DataType.FP32, 0, -1).decoupled().answering(calls::add));
            SharedMemory shared = server.sharedMemory();
            ModelStreamInferMethod method = new ModelStreamInferMethod(
                    server,
                    new InferCalls(
                            new CallAssembler(memory, shared, Integer.MAX_VALUE),
                            Optional.empty(),
                            ResponseCompression.NONE,
                            System::nanoTime),
                    new StreamOutbox.Limits(1000, Long.MAX_VALUE),
                    () -> true,
                    new Stopping());
            call = (ModelStreamInferCall) method.startCall(stream, new Metadata());
        }

        void send(ModelInferRequest request) {
            assertThat(stream.requested.getAndDecrement())
                    .as("messages asked for")
                    .isOne();
            call.onMessage(new Parsed.Ok<>(InferMessageReader.read(Messages.cut(request.toByteArray(), List.of(9)))));
        }

        void ready(boolean now) {
            stream.ready = now;
            if (now) {
                call.onReady();
            }
        }
    }

    private static ModelInferRequest request(int id, Random random) {
        String model = random.nextInt(10) == 0 ? "nope" : random.nextBoolean() ? "plain" : "many";
        ModelInferRequest.Builder request =
                Frontend.request(model, "FP32", ONE, 1).setId(String.valueOf(id));
        if (random.nextBoolean()) {
            request.putParameters(
                    "triton_enable_empty_final_response",
                    InferParameter.newBuilder().setBoolParam(true).build());
        }
        return request.build();
    }

    /** Answers a call to its end, in a random way. Returns how many responses it gave. */
    private static int answer(FakeCall call, Random random) {
        int responses = 0;
        boolean isMany = call.call().model().name().equals("many");
        while (isMany && random.nextInt(3) > 0) {
            call.respond(List.of(call.input(0, "OUTPUT0")), Map.of("n", new ParameterValue.Int(responses++)), false);
        }
        int end = random.nextInt(isMany ? 3 : 2);
        if (end == 0) {
            call.fail(ErrorCode.INTERNAL, "no");
        } else if (end == 1) {
            call.respond(List.of(call.input(0, "OUTPUT0")), Map.of("n", new ParameterValue.Int(responses++)), true);
        } else {
            call.end();
        }
        return responses;
    }

    private static void check(Harness harness, List<ModelInferRequest> requests, Map<String, Integer> responses) {
        assertThat(harness.stream.status).isEqualTo(Status.OK);
        Map<String, List<ModelStreamInferResponse>> answers = new HashMap<>();
        List<String> ordered = new ArrayList<>();
        for (ModelStreamInferResponse response : harness.stream.written) {
            String id = response.getInferResponse().getId();
            answers.computeIfAbsent(id, _ -> new ArrayList<>()).add(response);
            if (!requests.get(Integer.parseInt(id)).getModelName().equals("many")) {
                ordered.add(id);
            }
        }
        assertThat(ordered)
                .containsExactlyElementsOf(requests.stream()
                        .filter(request -> !request.getModelName().equals("many"))
                        .map(ModelInferRequest::getId)
                        .toList());
        for (ModelInferRequest request : requests) {
            check(request, answers.getOrDefault(request.getId(), List.of()), responses.get(request.getId()));
        }
        assertThat(harness.memory.buffersInUse()).isZero();
        harness.memory.close();
    }

    private static void check(ModelInferRequest request, List<ModelStreamInferResponse> answers, Integer responses) {
        int given = 0;
        for (int i = 0; i < answers.size(); i++) {
            ModelStreamInferResponse answer = answers.get(i);
            ModelInferResponse response = answer.getInferResponse();
            boolean isLast = i == answers.size() - 1;
            if (response.getOutputsCount() > 0) {
                assertThat(response.getParametersOrThrow("n").getInt64Param()).isEqualTo(given++);
            } else {
                assertThat(isLast).isTrue();
            }
            boolean isFinal = answer.getErrorMessage().startsWith("Request for unknown")
                    || response.getParametersOrThrow("triton_final_response").getBoolParam();
            boolean isToldOfEnd = !request.getModelName().equals("many") || request.getParametersCount() > 0;
            assertThat(isFinal).isIn(isLast, isLast && isToldOfEnd);
        }
        assertThat(given).isEqualTo(responses == null ? 0 : responses);
    }

    @Property(tries = 200)
    void answersEverythingInOrder(@ForAll Random random) {
        Harness harness = new Harness();
        List<ModelInferRequest> requests = new ArrayList<>();
        Map<String, Integer> responses = new HashMap<>();
        for (int step = 0; step < 4 * REQUESTS; step++) {
            switch (random.nextInt(4)) {
                case 0, 1 -> {
                    if (requests.size() < REQUESTS) {
                        requests.add(request(requests.size(), random));
                        harness.send(requests.getLast());
                    }
                }
                case 2 -> {
                    for (int skip = random.nextInt(5); skip > 0 && harness.calls.size() > 1; skip--) {
                        harness.calls.add(harness.calls.remove());
                    }
                    FakeCall call = harness.calls.poll();
                    if (call != null) {
                        responses.put(call.call().id(), answer(call, random));
                    }
                }
                default -> harness.ready(random.nextBoolean());
            }
        }
        harness.call.onHalfClose();
        for (FakeCall call : harness.calls) {
            responses.put(call.call().id(), answer(call, random));
        }
        harness.ready(true);

        check(harness, requests, responses);
    }

    @Property(tries = 30)
    void answersEverythingThatSeveralThreadsAnswer(
            @ForAll Random random, @ForAll @IntRange(min = 2, max = 4) int threads) throws Exception {
        Harness harness = new Harness();
        List<ModelInferRequest> requests = new ArrayList<>();
        for (int i = 0; i < REQUESTS; i++) {
            requests.add(request(i, random));
            harness.send(requests.getLast());
        }
        Map<String, Integer> responses = new HashMap<>();
        List<Callable<Integer>> answers = new ArrayList<>();
        List<String> ids = new ArrayList<>();
        for (FakeCall call : harness.calls) {
            long seed = random.nextLong();
            ids.add(call.call().id());
            answers.add(() -> answer(call, new Random(seed)));
        }

        try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            harness.call.onHalfClose();
            List<Future<Integer>> done = executor.invokeAll(answers, 20, TimeUnit.SECONDS);
            for (int i = 0; i < done.size(); i++) {
                responses.put(ids.get(i), done.get(i).get());
            }
        }
        harness.ready(true);

        check(harness, requests, responses);
    }

    @Property(tries = 100)
    void givesAllBackWhenTheClientGoesAway(@ForAll Random random) {
        Harness harness = new Harness();
        for (int i = 0; i < REQUESTS; i++) {
            harness.send(request(i, random));
            if (random.nextInt(3) == 0 && !harness.calls.isEmpty()) {
                answer(harness.calls.remove(), random);
            }
            if (random.nextInt(5) == 0) {
                harness.ready(random.nextBoolean());
            }
        }

        harness.call.onCancel();
        int written = harness.stream.written.size();
        assertThat(harness.calls).allMatch(FakeCall::isCancelled);
        harness.calls.forEach(call -> answer(call, random));
        harness.ready(true);

        assertThat(harness.stream.written).hasSize(written);
        assertThat(harness.memory.buffersInUse()).isZero();
        harness.memory.close();
    }
}
