package dev.nereid.distribution.parity;

import com.google.protobuf.ByteString;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.server.NereidServer;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** Runs scenarios on the server's port, as an embedding program does. */
final class EmbeddedScenarios implements ScenarioClient {
    private static final long TIMEOUT_SECONDS = 60;

    private final NereidServer server;

    EmbeddedScenarios(NereidServer server) {
        this.server = server;
    }

    @Override
    public Outcome run(Scenario scenario) throws InterruptedException {
        OutcomeObserver observer = new OutcomeObserver();
        ModelRef model;
        try {
            model = ModelRef.parse(
                    scenario.request().model(), scenario.request().version());
        } catch (InferenceException e) {
            return refused(e);
        }
        List<TensorBuffer> buffers = new ArrayList<>();
        List<InputTensor> inputs = new ArrayList<>();
        for (ClientRequest.Input input : scenario.request().inputs()) {
            TensorBuffer buffer = server.memory().allocate(input.data().length);
            buffers.add(buffer);
            buffer.segment().copyFrom(MemorySegment.ofArray(input.data()));
            long[] dims = input.shape().stream().mapToLong(Long::longValue).toArray();
            inputs.add(InputTensor.of(input.name(), input.datatype(), dims, buffer.segment(), MemoryPlace.HOST));
        }
        List<RequestedOutput> outputs = scenario.request().outputs().stream()
                .map(output -> RequestedOutput.classified(output.name(), output.classes()))
                .toList();
        server.infer(
                new InferRequest(
                        model,
                        scenario.request().id(),
                        inputs,
                        outputs,
                        parameters(scenario.request().parameters()),
                        options(scenario.request().parameters()),
                        () -> buffers.forEach(TensorBuffer::close)),
                observer);
        return observer.await();
    }

    @Override
    public void end() {
        // The server belongs to the test.
    }

    private static RequestOptions options(Map<String, Object> parameters) {
        return new RequestOptions(
                (Long) parameters.getOrDefault("priority", 0L),
                (Long) parameters.getOrDefault("timeout", 0L),
                OptionalLong.empty(),
                Optional.empty());
    }

    private static Map<String, ParameterValue> parameters(Map<String, Object> parameters) {
        Map<String, ParameterValue> own = new LinkedHashMap<>();
        parameters.forEach((key, value) -> own.put(
                key,
                switch (value) {
                    case Boolean bool -> new ParameterValue.Bool(bool);
                    case Long number -> new ParameterValue.Int(number);
                    case Double number -> new ParameterValue.Real(number);
                    default -> new ParameterValue.Text(value.toString());
                }));
        own.keySet().removeAll(List.of("priority", "timeout"));
        return own;
    }

    private static Outcome.Refused refused(InferenceException error) {
        return new Outcome.Refused(error.code().name(), error.publicMessage());
    }

    /** Collects the outcome. Written by one thread at a time, read after the end. */
    private static final class OutcomeObserver implements ResponseObserver {
        private final List<Outcome.Response> responses = new ArrayList<>();
        private final AtomicReference<Outcome> outcome = new AtomicReference<>();
        private final CountDownLatch ended = new CountDownLatch(1);

        @Override
        public void onResponse(InferResponse response) {
            List<Outcome.Output> outputs = new ArrayList<>();
            for (NamedTensor output : response.outputs()) {
                Shape shape = output.tensor().shape();
                outputs.add(new Outcome.Output(
                        output.name(),
                        output.tensor().type().name(),
                        Arrays.stream(shape.toArray()).boxed().toList(),
                        ByteString.copyFrom(output.tensor().data().asByteBuffer())));
            }
            Map<String, String> parameters = new TreeMap<>();
            response.parameters().forEach((key, value) -> parameters.put(key, text(value)));
            responses.add(new Outcome.Response(
                    response.model(), Long.toString(response.version()), response.id(), parameters, outputs));
            boolean last = response.isFinal();
            response.close();
            if (last) {
                onCompleted();
            }
        }

        @Override
        public void onCompleted() {
            outcome.set(new Outcome.Completed(responses));
            ended.countDown();
        }

        @Override
        public void onError(InferenceException error) {
            outcome.set(refused(error));
            ended.countDown();
        }

        Outcome await() throws InterruptedException {
            if (!ended.await(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
                throw new AssertionError("no end within " + TIMEOUT_SECONDS + " s");
            }
            return outcome.get();
        }

        private static String text(ParameterValue value) {
            return switch (value) {
                case ParameterValue.Bool bool -> Boolean.toString(bool.value());
                case ParameterValue.Int number -> Long.toString(number.value());
                case ParameterValue.Real number -> Double.toString(number.value());
                case ParameterValue.Text text -> text.value();
            };
        }
    }
}
