package dev.nereid.grpc.stream;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.ReceivedRequest;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** Tests that every request of a stream ends once and in order. */
final class StreamProperties {
    private static final int REQUESTS = 60;
    private static final ByteString ONE = TestFrontend.floats(1);

    private static ModelInferRequest request(int id, Random random) {
        String model = random.nextInt(10) == 0 ? "nope" : random.nextBoolean() ? "plain" : "many";
        ModelInferRequest.Builder request =
                TestFrontend.request(model, "FP32", ONE, 1).setId(String.valueOf(id));
        if (random.nextBoolean()) {
            request.putParameters(
                    "triton_enable_empty_final_response",
                    InferParameter.newBuilder().setBoolParam(true).build());
        }
        return request.build();
    }

    /** Responds to a request until its end, at random. Returns the number of responses. */
    private static int respond(ReceivedRequest call, Random random) {
        int responses = 0;
        boolean isMany = call.request().model().name().equals("many");
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

    private static void check(StreamHarness harness, List<ModelInferRequest> requests, Map<String, Integer> responses) {
        assertThat(harness.stream.status).isEqualTo(Status.OK);
        Map<String, List<ModelStreamInferResponse>> written = new HashMap<>();
        List<String> ordered = new ArrayList<>();
        for (ModelStreamInferResponse response : harness.stream.written) {
            String id = response.getInferResponse().getId();
            written.computeIfAbsent(id, _ -> new ArrayList<>()).add(response);
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
            check(request, written.getOrDefault(request.getId(), List.of()), responses.get(request.getId()));
        }
        harness.checkMemory();
    }

    private static void check(ModelInferRequest request, List<ModelStreamInferResponse> written, Integer responses) {
        int given = 0;
        for (int i = 0; i < written.size(); i++) {
            ModelStreamInferResponse streamed = written.get(i);
            ModelInferResponse response = streamed.getInferResponse();
            boolean isLast = i == written.size() - 1;
            if (response.getOutputsCount() > 0) {
                assertThat(response.getParametersOrThrow("n").getInt64Param()).isEqualTo(given++);
            } else {
                assertThat(isLast).isTrue();
            }
            boolean isFinal = streamed.getErrorMessage().startsWith("Request for unknown")
                    || response.getParametersOrThrow("triton_final_response").getBoolParam();
            boolean hasFinalResponse = !request.getModelName().equals("many") || request.getParametersCount() > 0;
            assertThat(isFinal).isIn(isLast, isLast && hasFinalResponse);
        }
        assertThat(given).isEqualTo(responses == null ? 0 : responses);
    }

    @Property(tries = 200)
    void respondsToEveryRequestInOrder(@ForAll Random random) {
        StreamHarness harness = new StreamHarness();
        List<ModelInferRequest> requests = new ArrayList<>();
        Map<String, Integer> responses = new HashMap<>();
        for (int step = 0; step < 4 * REQUESTS; step++) {
            switch (random.nextInt(5)) {
                case 0, 1 -> {
                    if (requests.size() < REQUESTS && harness.stream.requested.get() > 0) {
                        requests.add(request(requests.size(), random));
                        harness.send(requests.getLast());
                    }
                }
                case 2 -> {
                    for (int skip = random.nextInt(5); skip > 0 && harness.calls.size() > 1; skip--) {
                        harness.calls.add(harness.calls.remove());
                    }
                    ReceivedRequest call = harness.calls.poll();
                    if (call != null) {
                        responses.put(call.request().id(), respond(call, random));
                    }
                }
                case 3 -> {
                    Runnable task = harness.tasks.poll();
                    if (task != null) {
                        task.run();
                    }
                }
                default -> harness.ready(random.nextBoolean());
            }
        }
        harness.halfClose();
        for (ReceivedRequest call : harness.calls) {
            responses.put(call.request().id(), respond(call, random));
        }
        harness.ready(true);
        harness.run();

        check(harness, requests, responses);
    }

    @Property(tries = 30)
    void respondsToEveryRequestFromSeveralThreads(
            @ForAll Random random, @ForAll @IntRange(min = 2, max = 4) int threads) throws Exception {
        StreamHarness harness = new StreamHarness();
        List<ModelInferRequest> requests = new ArrayList<>();
        for (int i = 0; i < REQUESTS; i++) {
            requests.add(request(i, random));
            harness.send(requests.getLast());
            harness.run();
        }
        Map<String, Integer> responses = new ConcurrentHashMap<>();
        List<Callable<Integer>> responders = new ArrayList<>();
        List<String> ids = new ArrayList<>();
        for (ReceivedRequest call : harness.calls) {
            long seed = random.nextLong();
            ids.add(call.request().id());
            responders.add(() -> respond(call, new Random(seed)));
        }

        try (ExecutorService executor = Executors.newFixedThreadPool(threads + 1)) {
            harness.halfClose();
            Future<?> eventLoop = executor.submit(() -> {
                while (responses.size() < ids.size()) {
                    harness.run();
                    Thread.onSpinWait();
                }
            });
            List<Future<Integer>> done = executor.invokeAll(responders, 20, TimeUnit.SECONDS);
            for (int i = 0; i < done.size(); i++) {
                responses.put(ids.get(i), done.get(i).get());
            }
            eventLoop.get(20, TimeUnit.SECONDS);
        }
        harness.ready(true);
        harness.run();

        check(harness, requests, responses);
    }

    @Property(tries = 100)
    void releasesMemoryWhenTheClientCancels(@ForAll Random random) {
        StreamHarness harness = new StreamHarness();
        for (int i = 0; i < REQUESTS; i++) {
            harness.send(request(i, random));
            if (random.nextInt(3) == 0 && !harness.calls.isEmpty()) {
                respond(harness.calls.remove(), random);
            }
            harness.run();
            if (random.nextInt(5) == 0) {
                harness.ready(random.nextBoolean());
                harness.run();
            }
        }

        harness.cancel();
        int written = harness.stream.written.size();
        assertThat(harness.calls).allMatch(ReceivedRequest::isCancelled);
        harness.calls.forEach(call -> respond(call, random));
        harness.ready(true);
        harness.run();

        assertThat(harness.stream.written).hasSize(written);
        harness.checkMemory();
    }
}
