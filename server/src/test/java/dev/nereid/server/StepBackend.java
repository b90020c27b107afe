package dev.nereid.server;

import dev.nereid.plugin.PluginJar;
import java.nio.file.Path;

/**
 * A backend for steps of ensembles. Each output is the sum of the inputs that are there, plus the parameter {@code add},
 * element by element. Other parameters have it fail, wait until a file is gone, leave an output out, mark its responses
 * as parts of sequences, pass its first input on, send several responses, or record where the tensors of whole batches lie.
 */
final class StepBackend {
    private static final String SOURCE = """
            package step;

            import dev.nereid.spi.*;
            import java.lang.foreign.*;
            import java.nio.file.*;
            import java.util.*;

            public final class Step implements BackendProvider {
                static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

                public String name() { return "step"; }

                public Backend create(BackendContext context) {
                    return new Backend() {
                        public Model load(ModelContext model) {
                            if (model.parameters().value("fail_load").isPresent()) {
                                throw new BackendException(ErrorCode.INTERNAL, "the file is broken");
                            }
                            return new StepModel(model.settings(), model.parameters());
                        }
                        public void close() {}
                    };
                }

                record StepModel(ModelSettings settings, Parameters parameters) implements Model {
                    public ModelInstance newInstance(InstanceContext context) {
                        return new Instance(settings, parameters);
                    }
                    public Optional<BackendTraits.Execution> execution() {
                        return parameters.text("execution").map(BackendTraits.Execution::valueOf);
                    }
                    public void close() {}
                }

                record Instance(ModelSettings settings, Parameters parameters) implements ModelInstance {
                    public void execute(Batch batch) {
                        if (parameters.value("gate").isPresent()) {
                            await(Path.of(parameters.required("gate")), batch.requests());
                        }
                        if (parameters.value("record").isPresent()) {
                            whole(batch, Path.of(parameters.required("record")));
                            return;
                        }
                        for (InferenceRequest request : batch.requests()) {
                            if (request.id().equals(parameters.text("fail").orElse("none"))) {
                                request.fail(new BackendException(ErrorCode.UNAVAILABLE, "no luck"));
                            } else if (settings.decoupled()) {
                                stream(request);
                            } else {
                                fill(request, request.response(), 0);
                            }
                        }
                    }

                    /** Computes OUT from IN for the whole batch, and records where they lie. */
                    private void whole(Batch batch, Path record) {
                        Tensor in = batch.gather("IN");
                        Tensor out = batch.allocate("OUT", DataType.FP32, in.shape());
                        float added = Float.parseFloat(parameters.text("add").orElse("0"));
                        for (long i = 0; i < in.shape().elementCount(); i++) {
                            out.data().setAtIndex(FLOAT, i, in.data().getAtIndex(FLOAT, i) + added);
                        }
                        try {
                            Files.writeString(
                                    record,
                                    settings.name() + " " + batch.requests().size() + " " + in.data().address() + " "
                                            + out.data().address() + "\\n",
                                    StandardOpenOption.CREATE,
                                    StandardOpenOption.APPEND);
                        } catch (java.io.IOException e) {
                            throw new IllegalStateException(e);
                        }
                    }

                    private void await(Path gate, List<InferenceRequest> requests) {
                        while (Files.exists(gate) && !requests.getFirst().isCancelled()) {
                            java.util.concurrent.locks.LockSupport.parkNanos(1_000_000);
                        }
                    }

                    /** Sends as many responses as the first element says. */
                    private void stream(InferenceRequest request) {
                        ResponseSender sender = request.sender();
                        int count = (int) tensors(request).getFirst().data().get(FLOAT, 0);
                        for (int i = 0; i < count; i++) {
                            InferenceResponse response = sender.newResponse();
                            fill(request, response, i);
                            sender.send(response);
                        }
                        sender.complete();
                    }

                    private void fill(InferenceRequest request, InferenceResponse response, int more) {
                        if (parameters.value("sequence_id").isPresent()) {
                            response.parameter(
                                    "sequence_id",
                                    Long.parseLong(parameters.required("sequence_id")));
                            response.parameter("sequence_start", true);
                        }
                        for (TensorSpec output : settings.outputs()) {
                            if (output.name().equals(parameters.text("missing").orElse(""))) {
                                continue;
                            }
                            if (parameters.value("pass").isPresent()) {
                                response.put(output.name(), tensors(request).getFirst(), () -> {});
                                continue;
                            }
                            write(request, response, output.name(), more);
                        }
                    }

                    private static List<Tensor> tensors(InferenceRequest request) {
                        return request.inputs().stream()
                                .map(name -> request.input(name).orElseThrow())
                                .toList();
                    }

                    private void write(InferenceRequest request, InferenceResponse response, String output, int more) {
                        Shape shape = null;
                        float[] sums = null;
                        float added = Float.parseFloat(parameters.text("add").orElse("0")) + more;
                        for (Tensor input : tensors(request)) {
                            if (sums == null) {
                                shape = input.shape();
                                sums = new float[(int) shape.elementCount()];
                                Arrays.fill(sums, added);
                            }
                            for (int i = 0; i < sums.length; i++) {
                                sums[i] += input.data().getAtIndex(FLOAT, i);
                            }
                        }
                        if (sums == null) {
                            shape = settings.batches() ? Shape.of(1, 1) : Shape.of(1);
                            sums = new float[] {added};
                        }
                        Tensor target = response.allocate(output, DataType.FP32, shape);
                        for (int i = 0; i < sums.length; i++) {
                            target.data().setAtIndex(FLOAT, i, sums[i]);
                        }
                    }
                }
            }
            """;

    private StepBackend() {}

    static void write(Path plugins) {
        PluginJar.of(SOURCE).provider("step.Step").write(plugins.resolve("step.jar"));
    }
}
