package dev.nereid.server;

import dev.nereid.api.Cancellation;
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
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A repository with ensembles, and requests to them. Confined to the test's thread. */
final class EnsembleFixture {
    private static final long TIMEOUT_SECONDS = 30;

    private final Path plugins;
    private final TestModels models;

    EnsembleFixture(Path directory) throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        StepBackend.write(plugins);
    }

    TestModels models() {
        return models;
    }

    ServerOptions options() {
        return ServerOptions.of(models.root()).withPlugins(plugins);
    }

    /** Returns inputs or outputs of numbers in a configuration. */
    static String tensors(String kind, String dims, String... names) {
        return Stream.of(names)
                .map(name -> kind + " { name: \"" + name + "\" data_type: TYPE_FP32 dims: [ " + dims + " ] }\n")
                .collect(Collectors.joining());
    }

    /** Adds a model with batches of up to 8 that has input IN and output OUT. */
    EnsembleFixture step(String name, String more) {
        return model(
                name, "max_batch_size: 8\n" + tensors("input", "-1", "IN") + tensors("output", "-1", "OUT") + more);
    }

    /** Adds a model with other tensors. */
    EnsembleFixture model(String name, String config, long... versions) {
        models.model(name, "backend: \"step\"\ninstance_group { count: 1 kind: KIND_CPU }\n" + config, versions);
        return this;
    }

    /** Returns a step of an ensemble. */
    static String step(String model, String inputs, String outputs) {
        return "step { model_name: \"" + model + "\" model_version: -1 " + maps("input_map", inputs)
                + maps("output_map", outputs) + "}\n";
    }

    private static String maps(String field, String pairs) {
        return Stream.of(pairs.split(","))
                .filter(pair -> !pair.isEmpty())
                .map(pair -> pair.split("="))
                .map(pair -> field + " { key: \"" + pair[0] + "\" value: \"" + pair[1] + "\" } ")
                .collect(Collectors.joining());
    }

    /** Adds an ensemble with batches of up to 8 that has input IN and output OUT. */
    EnsembleFixture ensemble(String name, String... steps) {
        return ensembleOf(
                name, "max_batch_size: 8\n" + tensors("input", "-1", "IN") + tensors("output", "-1", "OUT"), steps);
    }

    /** Adds an ensemble with other tensors. */
    EnsembleFixture ensembleOf(String name, String config, String... steps) {
        models.model(name, "platform: \"ensemble\"\n" + config + scheduling(steps));
        return this;
    }

    static String scheduling(String... steps) {
        return "ensemble_scheduling {\n" + String.join("", steps) + "}\n";
    }

    /** One received response. */
    record Response(
            Map<String, List<Float>> outputs, Map<String, List<Long>> shapes, Map<String, ParameterValue> parameters) {}

    /** The outcome of a request; its methods wait for the end. */
    static final class Outcome implements ResponseObserver {
        private final List<Response> responses = Collections.synchronizedList(new ArrayList<>());
        private final CountDownLatch ended = new CountDownLatch(1);
        private volatile @Nullable InferenceException error;
        private volatile Cancellation cancellation = Cancellation.NONE;

        @Override
        public void onResponse(InferResponse response) {
            try (response) {
                Map<String, List<Float>> outputs = new TreeMap<>();
                Map<String, List<Long>> shapes = new TreeMap<>();
                for (NamedTensor output : response.outputs()) {
                    outputs.put(
                            output.name(),
                            output.tensor()
                                    .data()
                                    .elements(ValueLayout.JAVA_FLOAT_UNALIGNED)
                                    .map(one -> one.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0))
                                    .toList());
                    List<Long> dims = new ArrayList<>();
                    for (long dim : output.tensor().shape().toArray()) {
                        dims.add(dim);
                    }
                    shapes.put(output.name(), dims);
                }
                responses.add(new Response(outputs, shapes, response.parameters()));
            }
            if (response.isFinal()) {
                ended.countDown();
            }
        }

        @Override
        public void onCompleted() {
            ended.countDown();
        }

        @Override
        public void onError(InferenceException failure) {
            error = failure;
            ended.countDown();
        }

        void cancel() {
            cancellation.cancel();
        }

        boolean hasEnded() {
            return ended.getCount() == 0;
        }

        private void await() {
            try {
                if (!ended.await(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
                    throw new AssertionError("no end");
                }
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }

        InferenceException error() {
            await();
            InferenceException failure = error;
            if (failure == null) {
                throw new AssertionError("succeeded: " + responses);
            }
            return failure;
        }

        List<Response> responses() {
            await();
            if (error != null) {
                throw new AssertionError("failed", error);
            }
            return List.copyOf(responses);
        }

        /** Returns the content of an output in the only response. */
        List<Float> output(String name) {
            List<Response> all = responses();
            if (all.size() != 1) {
                throw new AssertionError("responses: " + all);
            }
            return all.getFirst().outputs().getOrDefault(name, List.of());
        }

        /** Returns the first number of an output in each response. */
        List<Float> firsts(String name) {
            return responses().stream()
                    .map(response -> response.outputs().get(name).getFirst())
                    .toList();
        }
    }

    /** A request with inputs of one row each. */
    record Query(
            NereidServer server,
            String model,
            String id,
            Map<String, float[]> inputs,
            List<String> outputs,
            RequestOptions options,
            boolean batches) {
        Query(NereidServer server, String model, Map<String, float[]> inputs) {
            this(server, model, "", inputs, List.of(), RequestOptions.DEFAULT, true);
        }

        static Query of(NereidServer server, String model, float... in) {
            return new Query(server, model, Map.of("IN", in));
        }

        Query withId(String changed) {
            return new Query(server, model, changed, inputs, outputs, options, batches);
        }

        Query withOutputs(String... changed) {
            return new Query(server, model, id, inputs, List.of(changed), options, batches);
        }

        Query with(RequestOptions changed) {
            return new Query(server, model, id, inputs, outputs, changed, batches);
        }

        Query withoutBatch() {
            return new Query(server, model, id, inputs, outputs, options, false);
        }

        Outcome send() {
            List<InputTensor> tensors = new ArrayList<>();
            List<TensorBuffer> memory = new ArrayList<>();
            inputs.forEach((name, values) -> {
                TensorBuffer buffer = server.memory().allocate(values.length * (long) Float.BYTES);
                for (int i = 0; i < values.length; i++) {
                    buffer.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, values[i]);
                }
                memory.add(buffer);
                long[] dims = batches ? new long[] {1, values.length} : new long[] {values.length};
                tensors.add(InputTensor.of(name, DataType.FP32.name(), dims, buffer.segment(), MemoryPlace.HOST));
            });
            Outcome outcome = new Outcome();
            outcome.cancellation = server.infer(
                    new InferRequest(
                            ModelRef.latest(model),
                            id,
                            tensors,
                            outputs.stream().map(RequestedOutput::of).toList(),
                            Map.of(),
                            options,
                            () -> memory.forEach(TensorBuffer::close)),
                    outcome);
            return outcome;
        }
    }
}
