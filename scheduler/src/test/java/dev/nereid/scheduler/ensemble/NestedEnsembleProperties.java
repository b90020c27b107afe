package dev.nereid.scheduler.ensemble;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.call.CallChain;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.EnsembleScheduler;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelVersion;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.RequestOutputs;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.ValueLayout;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/**
 * A random ensemble as a step of another one, whose next step reads all its outputs, equals the interpreter of both. Errors
 * name each level once, and a cancellation reaches the steps of both.
 */
class NestedEnsembleProperties {
    private static final String FAILURE = "no luck";

    /** The ensemble around another one: step 0 is that, step 1 reads its outputs. */
    private static final class Outer {
        final RandomEnsemble inner;
        final FakeSteps innerSteps;
        final FakeSteps outerSteps;
        final EnsembleScheduler innerScheduler;
        final EnsembleScheduler scheduler;

        Outer(RandomEnsemble inner, LeakCheckingMemory memory, SchedulerEnvironment environment) {
            this.inner = inner;
            innerSteps = new FakeSteps(inner.stepSettings(), memory);
            innerScheduler = new EnsembleScheduler(
                    inner.plan(new EnsembleLimits(0)), innerSteps, AdmissionLimits.NONE, environment, meter());
            ModelSettings last = last();
            outerSteps = new FakeSteps(List.of(inner.settings(), last), memory);
            scheduler = new EnsembleScheduler(
                    EnsemblePlan.of(settings(), definitions(), new EnsembleLimits(0)),
                    new Models(this),
                    AdmissionLimits.NONE,
                    environment,
                    meter());
        }

        private static ModelMeter meter() {
            return new ModelMeter(InstantSource.system());
        }

        private static TensorSpec optional(String name) {
            return TensorSpec.of(name, DataType.INT64, Shape.of(1)).with(TensorSpec.Trait.OPTIONAL);
        }

        private ModelSettings last() {
            ModelSettingsBuilder settings = ModelSettings.builder("last", 1);
            inner.outputs().forEach(output -> settings.input(optional(output)));
            return settings.output(TensorSpec.of("OUT", DataType.INT64, Shape.of(1)))
                    .build();
        }

        private ModelSettings settings() {
            ModelSettingsBuilder settings = ModelSettings.builder("outer", 1).decoupled(inner.isDecoupled());
            inner.settings().inputs().forEach(settings::input);
            return settings.output(TensorSpec.of("OUT", DataType.INT64, Shape.of(1)))
                    .build();
        }

        private List<EnsemblePlan.StepDefinition> definitions() {
            Map<String, String> inputs = inner.settings().inputs().stream()
                    .map(TensorSpec::name)
                    .collect(Collectors.toMap(name -> name, name -> name));
            Map<String, String> outputs =
                    inner.outputs().stream().collect(Collectors.toMap(name -> name, name -> "of " + name));
            return List.of(
                    new EnsemblePlan.StepDefinition("e", inputs, outputs, inner.isDecoupled()),
                    new EnsemblePlan.StepDefinition("last", outputs, Map.of("OUT", "OUT"), false));
        }
    }

    /** The models of the outer ensemble: the inner one, and a fake. */
    private record Models(Outer outer) implements StepModels {
        @Override
        public Cancellation acquire(CheckedRequest request, Receiver receiver) {
            return outer.outerSteps.acquire(request, new Receiver() {
                @Override
                public void acquired(StepModels.Pinned models) {
                    receiver.acquired(new StepModels.Pinned() {
                        @Override
                        public StepModel model(int step) {
                            return step == 0 ? new Inner(outer) : models.model(step);
                        }

                        @Override
                        public void close() {
                            models.close();
                        }
                    });
                }

                @Override
                public void failed(InferenceException error) {
                    receiver.failed(error);
                }
            });
        }

        @Override
        public CallChain callers(CheckedRequest request) {
            return CallChain.NONE;
        }

        @Override
        public String problems() {
            return "";
        }
    }

    /** The inner ensemble as the model of a step. */
    private record Inner(Outer outer) implements StepModel {
        @Override
        public ModelSettings settings() {
            return outer.inner.settings();
        }

        @Override
        public boolean needsHostTensors() {
            return false;
        }

        @Override
        public Cancellation submit(InferRequest request, ResponseObserver observer) {
            List<NamedTensor> inputs = request.inputs().stream()
                    .map(input -> new NamedTensor(input.name(), Tensor.of(DataType.INT64, Shape.of(1), input.data())))
                    .toList();
            return outer.innerScheduler.submit(
                    new CheckedRequest(
                            new ModelVersion("e", 1),
                            "",
                            RequestInputs.of(inputs, 1, request.release()),
                            RequestOutputs.all(request.outputs().stream()
                                    .map(RequestedOutput::name)
                                    .toList()),
                            Map.of(),
                            request.options(),
                            0),
                    observer);
        }
    }

    @Property(tries = 500)
    void equalAnInterpreter(@ForAll long seed) throws Exception {
        RandomEnsemble ensemble = new RandomEnsemble(seed);
        Random random = new Random(~seed);
        try (LeakCheckingMemory memory = new LeakCheckingMemory()) {
            Outer outer = new Outer(
                    ensemble, memory, new SchedulerEnvironment(memory, new FakeClock(), new TimeoutQueue(() -> {})));
            Map<String, Long> values = ensemble.inputs();
            RandomEnsemble.Expected inner = ensemble.interpret(values, ensemble.outputs(), 0);
            List<Map<String, Long>> expected = inner.responses().stream()
                    .map(outputs -> Map.of("OUT", last(outputs)))
                    .toList();
            EnsembleClient client = new EnsembleClient();
            Cancellation cancellation = outer.scheduler.submit(request(memory, values), client);
            int cancelAfter = random.nextInt(5) == 0 ? random.nextInt(8) : -1;
            for (int completed = 0; !client.hasEnded(); completed++) {
                if (completed == cancelAfter) {
                    cancellation.cancel();
                }
                completeOne(outer, random);
            }

            check(client, expected, inner.mayFail(), cancelAfter >= 0);
            outer.scheduler.close();
            outer.innerScheduler.close();
            assertThat(outer.innerSteps.closed).hasValue(outer.innerSteps.acquired.get());
            assertThat(outer.outerSteps.closed).hasValue(1);
            assertThat(memory.bytesInUse()).isZero();
        }
    }

    private static void check(
            EnsembleClient client, List<Map<String, Long>> expected, boolean mayFail, boolean mayBeCancelled) {
        InferenceException error = client.error;
        if (error == null) {
            assertThat(client.responses).isEqualTo(expected);
            assertThat(mayFail).isFalse();
            return;
        }
        assertThat(client.responses).isEqualTo(expected.subList(0, client.responses.size()));
        if (error.code() == ErrorCode.CANCELLED) {
            assertThat(mayBeCancelled).isTrue();
        } else {
            assertThat(mayFail).isTrue();
            assertThat(error.publicMessage())
                    .matches("in ensemble 'outer', in ensemble 'e', " + FAILURE + " \\(step 's\\d+'\\)");
        }
    }

    private static CheckedRequest request(LeakCheckingMemory memory, Map<String, Long> values) {
        TensorBuffer buffer = memory.allocate(values.size() * (long) Long.BYTES);
        List<NamedTensor> inputs = new ArrayList<>();
        values.forEach((name, value) -> {
            long at = inputs.size() * (long) Long.BYTES;
            buffer.segment().set(ValueLayout.JAVA_LONG, at, value);
            inputs.add(new NamedTensor(
                    name,
                    Tensor.of(DataType.INT64, Shape.of(1), buffer.segment().asSlice(at, Long.BYTES))));
        });
        return new CheckedRequest(
                new ModelVersion("outer", 1),
                "",
                RequestInputs.of(inputs, 1, buffer::close),
                RequestOutputs.all(List.of("OUT")),
                Map.of(),
                RequestOptions.DEFAULT,
                0);
    }

    private static long last(Map<String, Long> inputs) {
        return new TreeMap<>(inputs).hashCode();
    }

    private static void completeOne(Outer outer, Random random) {
        List<FakeSteps.Call> waiting = new ArrayList<>(outer.innerSteps.calls);
        int ofInner = waiting.size();
        waiting.addAll(outer.outerSteps.calls);
        int chosen = random.nextInt(waiting.size());
        FakeSteps.Call call = waiting.get(chosen);
        Map<String, Long> inputs = call.inputs();
        if (call.cancelled.get() && random.nextBoolean()) {
            call.fail(new InferenceException(ErrorCode.CANCELLED, "request was cancelled"));
        } else if (chosen >= ofInner) {
            call.respond(Map.of("OUT", last(inputs)), true);
        } else if (outer.inner.fails(call.step, inputs, 0)
                && call.sent == outer.inner.responsesBeforeFailure(call.step, inputs, 0)) {
            call.fail(new InferenceException(ErrorCode.UNAVAILABLE, FAILURE));
        } else if (call.sent == outer.inner.responses(call.step, inputs, 0)) {
            call.complete();
        } else {
            boolean decoupled = outer.innerSteps.settings(call.step).decoupled();
            call.respond(outer.inner.outputs(call.step, inputs, call.sent, 0), !decoupled);
        }
    }
}
