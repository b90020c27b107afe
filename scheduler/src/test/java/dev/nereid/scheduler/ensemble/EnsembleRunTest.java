package dev.nereid.scheduler.ensemble;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.api.statistics.FailureReason;
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
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.FakeFlow;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Requests to ensembles whose steps the test completes one by one. */
class EnsembleRunTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeClock clock = new FakeClock();
    private final TimeoutQueue timer = new TimeoutQueue(() -> {});
    private final ModelMeter meter = new ModelMeter(InstantSource.system());
    private final List<EnsemblePlan.StepDefinition> definitions = new ArrayList<>();
    private RequestOptions options = RequestOptions.DEFAULT;
    private int batchSize = 1;
    private FakeSteps steps = new FakeSteps(List.of(), memory);
    private EnsembleScheduler scheduler;
    private EnsembleClient client = new EnsembleClient();

    private static TensorSpec spec(String name) {
        return TensorSpec.of(name, DataType.INT64, Shape.of(1));
    }

    /** Adds a step {@code "model input=tensor,... output=tensor,..."}; that of a decoupled model ends with {@code !}. */
    private void step(String text) {
        String[] parts = text.split(" ", -1);
        definitions.add(new EnsemblePlan.StepDefinition(parts[0], maps(parts[1]), maps(parts[2]), parts.length > 3));
    }

    private static Map<String, String> maps(String pairs) {
        return Stream.of(pairs.split(",", -1))
                .map(pair -> pair.split("=", -1))
                .collect(Collectors.toMap(pair -> pair[0], pair -> pair[1]));
    }

    private void start(EnsembleLimits limits, String... outputs) {
        boolean decoupled = definitions.stream().anyMatch(EnsemblePlan.StepDefinition::decoupled);
        ModelSettingsBuilder settings =
                ModelSettings.builder("e", 1).decoupled(decoupled).input(spec("IN"));
        Stream.of(outputs).forEach(output -> settings.output(spec(output)));
        steps = new FakeSteps(
                definitions.stream().map(EnsembleRunTest::settings).toList(), memory);
        scheduler = new EnsembleScheduler(
                EnsemblePlan.of(settings.build(), definitions, limits),
                steps,
                AdmissionLimits.NONE,
                new SchedulerEnvironment(memory, clock, timer),
                meter);
    }

    private static ModelSettings settings(EnsemblePlan.StepDefinition step) {
        ModelSettingsBuilder settings = ModelSettings.builder(step.model(), 1).decoupled(step.decoupled());
        step.inputs().keySet().forEach(input -> settings.input(spec(input)));
        step.outputs().keySet().forEach(output -> settings.output(spec(output)));
        return settings.build();
    }

    private void start(String... outputs) {
        start(new EnsembleLimits(0), outputs);
    }

    private Cancellation send(long value) {
        return send(client, value);
    }

    private Cancellation send(EnsembleClient observer, long value) {
        TensorBuffer buffer = memory.allocate(Long.BYTES);
        buffer.segment().set(ValueLayout.JAVA_LONG, 0, value);
        NamedTensor input = new NamedTensor("IN", Tensor.of(DataType.INT64, Shape.of(1), buffer.segment()));
        return scheduler.submit(
                new CheckedRequest(
                        new ModelVersion("e", 1),
                        "x",
                        RequestInputs.of(List.of(input), batchSize, buffer::close),
                        RequestOutputs.all(List.of("OUT")),
                        Map.of("p", new ParameterValue.Int(5)),
                        options,
                        clock.getAsLong()),
                observer);
    }

    /** Returns the only waiting request to a step. */
    private FakeSteps.Call call(int step) {
        List<FakeSteps.Call> found =
                steps.calls.stream().filter(call -> call.step == step).toList();
        assertThat(found).as("requests to step " + step).hasSize(1);
        return found.getFirst();
    }

    private List<FakeSteps.Call> calls(int step) {
        return steps.calls.stream().filter(call -> call.step == step).toList();
    }

    private static MemorySegment input(FakeSteps.Call call) {
        return call.request.inputs().getFirst().data();
    }

    @Test
    void passesEverythingOnWithoutACopy() {
        step("first I=IN O=mid");
        step("second I=mid O=OUT");
        start("OUT");
        options = new RequestOptions(
                3, 0, OptionalLong.of(99), Optional.of(new Sequence(new Sequence.Id.Numeric(7), true, false)));
        send(1);

        FakeSteps.Call first = call(0);
        assertThat(first.request.id()).isEqualTo("x");
        assertThat(first.request.parameters()).isEqualTo(Map.of("p", new ParameterValue.Int(5)));
        assertThat(first.request.options()).isEqualTo(options);
        assertThat(first.request.outputs()).extracting(output -> output.name()).containsExactly("O");
        StepResponse response = new StepResponse(memory, Map.of("O", 2L), Map.of(), true);
        long address = response.outputs().getFirst().tensor().data().address();
        first.respondWith(response);

        assertThat(input(call(1)).address()).isEqualTo(address);
        call(1).respond(Map.of("O", 3L), true);
        assertThat(client.responses).containsExactly(Map.of("OUT", 3L));
        assertThat(client.parameters.getFirst())
                .isEqualTo(Map.of(
                        "sequence_id", new ParameterValue.Int(7),
                        "sequence_start", new ParameterValue.Bool(true),
                        "sequence_end", new ParameterValue.Bool(false)));
    }

    /** Two steps read the input, and one of them another tensor: each is freed with its last reader. */
    @Test
    void takesTensorsBetweenStepsInAnyPlace() {
        step("a X=IN Y=T,Z=RESULT");
        step("b X=T,W=RESULT Y=OUT");
        start("OUT", "RESULT");
        send(5);

        assertThat(call(0).request.outputs()).containsExactly(RequestedOutput.inAnyPlace("Y"), RequestedOutput.of("Z"));
        call(0).respond(Map.of("Y", 1L, "Z", 2L), true);
        assertThat(call(1).request.outputs()).containsExactly(RequestedOutput.of("Y"));
        call(1).respond(Map.of("Y", 3L), true);
    }

    @Test
    void takesTensorsOnTheHostIfTheirStepOrAReaderNeedsThemThere() {
        step("a X=IN Y=T");
        step("b X=T Y=U");
        step("c X=U,W=T Y=V");
        step("d X=V Y=OUT");
        List<RequestedOutput> onHost = List.of(RequestedOutput.of("Y"));
        List<RequestedOutput> anywhere = List.of(RequestedOutput.inAnyPlace("Y"));
        Map<Integer, List<List<RequestedOutput>>> expected = Map.of(
                0, List.of(onHost, anywhere, anywhere, onHost),
                1, List.of(onHost, onHost, anywhere, onHost),
                2, List.of(onHost, onHost, onHost, onHost),
                3, List.of(anywhere, anywhere, onHost, onHost),
                4, List.of(anywhere, anywhere, anywhere, onHost));
        for (int needing = 0; needing <= 4; needing++) {
            start("OUT");
            steps.onHost.add(needing);
            client = new EnsembleClient();
            send(5);
            for (int step = 0; step < 4; step++) {
                assertThat(call(step).request.outputs())
                        .as("step %d, with step %d that needs the host", step, needing)
                        .isEqualTo(expected.get(needing).get(step));
                call(step).respond(Map.of("Y", 1L), true);
            }
        }
    }

    @Test
    void releasesWhatNoStepReadsAnyMore() {
        step("first I=IN O=mid");
        step("second I=mid,J=IN O=more");
        step("third I=more O=OUT");
        start("OUT");
        send(1);
        assertThat(memory.buffersInUse()).as("the input").isOne();

        call(0).respond(Map.of("O", 2L), true);
        assertThat(memory.buffersInUse()).as("input and output of the first").isEqualTo(2);

        call(1).respond(Map.of("O", 3L), true);
        assertThat(memory.buffersInUse()).as("output of the second").isOne();

        call(2).respond(Map.of("O", 4L), true);
        assertThat(client.responses).containsExactly(Map.of("OUT", 4L));
        assertThat(memory.buffersInUse()).isZero();
    }

    @Test
    void countsTheTimesOfItsSteps() {
        step("first I=IN O=mid");
        step("second I=mid O=OUT");
        start("OUT");
        send(1);
        call(0).respond(Map.of("O", 2L), true);
        call(1).respond(Map.of("O", 2L), true);

        var read = meter.read();
        assertThat(read.executions().executionCount()).isOne();
        assertThat(read.inferences().compute().input().nanos()).isEqualTo(2);
        assertThat(read.inferences().compute().infer().nanos()).isEqualTo(20);
        assertThat(read.inferences().compute().output().nanos()).isEqualTo(200);
        assertThat(read.inferences().queue().count()).isOne();
    }

    @Test
    void countsWithItsOwnBatch() {
        step("first I=IN O=OUT");
        start("OUT");
        batchSize = 5;
        send(1);
        call(0).respond(Map.of("O", 2L), true);

        var read = meter.read().executions();
        assertThat(read.inferenceCount()).isEqualTo(5);
        assertThat(read.executionCount()).isOne();
        assertThat(read.batches())
                .singleElement()
                .satisfies(batch -> assertThat(batch.batchSize()).isEqualTo(5));
    }

    /** A tensor read behind a decoupled step is freed when the last of its responses was handled, not at the end. */
    @Test
    void releasesWhatNoResponseReadsAnyMore() {
        step("many I=IN O=one !");
        step("join I=one,J=IN O=two");
        step("last I=two O=OUT");
        start("OUT");
        send(1);
        FakeSteps.Call many = call(0);
        many.respond(Map.of("O", 1L), false);
        assertThat(memory.buffersInUse()).as("the input, the response").isEqualTo(2);
        call(1).respond(Map.of("O", 2L), true);
        assertThat(memory.buffersInUse()).as("the input, the joined response").isEqualTo(2);
        call(2).respond(Map.of("O", 3L), true);
        assertThat(memory.buffersInUse()).as("the input").isOne();

        many.complete();
        assertThat(memory.buffersInUse()).isZero();
        assertThat(client.responses).containsExactly(Map.of("OUT", 3L));
    }

    /** The speed of later steps does not matter. */
    @Test
    void endsBehindTheLastResponseIfItsDecoupledStepDoes() {
        step("many I=IN O=one !");
        step("next I=one O=OUT");
        start("OUT");
        for (boolean isFast : List.of(true, false)) {
            client = new EnsembleClient();
            send(1);
            FakeSteps.Call many = call(0);
            many.respond(Map.of("O", 1L), false);
            FakeSteps.Call next = call(1);
            if (isFast) {
                next.respond(Map.of("O", 2L), true);
                many.complete();
            } else {
                many.complete();
                next.respond(Map.of("O", 2L), true);
            }
            assertThat(client.responses).containsExactly(Map.of("OUT", 2L));
            assertThat(client.terminals).isEqualTo(1);
            assertThat(client.endsWithResponse).isFalse();
        }
    }

    @Test
    void endsWithTheLastResponseIfItsDecoupledStepDoes() {
        step("many I=IN O=one !");
        step("next I=one O=OUT");
        start("OUT");
        for (boolean isFast : List.of(true, false)) {
            client = new EnsembleClient();
            send(1);
            FakeSteps.Call many = call(0);
            many.respond(Map.of("O", 1L), false);
            FakeSteps.Call first = call(1);
            if (isFast) {
                first.respond(Map.of("O", 2L), true);
                assertThat(client.hasEnded()).isFalse();
                many.respond(Map.of("O", 3L), true);
                call(1).respond(Map.of("O", 4L), true);
            } else {
                many.respond(Map.of("O", 3L), true);
                calls(1).getLast().respond(Map.of("O", 4L), true);
                first.respond(Map.of("O", 2L), true);
            }
            assertThat(client.responses).containsExactly(Map.of("OUT", 2L), Map.of("OUT", 4L));
            assertThat(client.terminals).isEqualTo(1);
            assertThat(client.endsWithResponse).isTrue();
        }
    }

    /** Outputs of a step that no later step reads and no client requested are freed with the response. */
    @Test
    void releasesOutputsThatAreNotRequested() {
        step("first I=IN O=OUT,P=MORE");
        start("OUT", "MORE");
        send(1); // requests OUT alone
        call(0).respond(Map.of("O", 1L, "P", 2L), true);

        assertThat(client.responses).containsExactly(Map.of("OUT", 1L));
        assertThat(memory.buffersInUse()).isZero();
    }

    /** The first failure counts; it is sent when all steps have returned. */
    @Test
    void failsWithTheFirstFailureWhenAllHaveReturned() {
        step("left I=IN O=a");
        step("right I=IN O=b");
        step("join I=a,J=b O=OUT");
        start("OUT");
        send(1);
        FakeSteps.Call right = call(1);
        call(0).fail(new InferenceException(ErrorCode.UNAVAILABLE, "no luck"));

        assertThat(client.hasEnded()).isFalse();
        assertThat(right.cancelled).isTrue();
        right.fail(new InferenceException(ErrorCode.CANCELLED, "request was cancelled"));

        assertThat(client.error).isNotNull().satisfies(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(error.publicMessage()).isEqualTo("in ensemble 'e', no luck (step 'left')");
        });
        assertThat(meter.read().failures()).isEqualTo(Map.of(FailureReason.OTHER, 1L));
        assertThat(steps.closed).hasValue(1);
    }

    /** The stack belongs to the plugin that sends the response of the step before. */
    @Test
    void failsWithAStepWhoseSubmissionUsesUpTheStack() {
        step("first I=IN O=mid");
        step("second I=mid O=OUT");
        start("OUT");
        send(1);
        steps.executeDirectly(call -> {
            call.request.release().run();
            throw new StackOverflowError("deep");
        });
        call(0).respond(Map.of("O", 2L), true);

        assertThat(client.error).isNotNull().satisfies(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.INTERNAL);
            assertThat(error.publicMessage())
                    .isEqualTo("in ensemble 'e', internal error: java.lang.StackOverflowError: deep");
        });
        assertThat(scheduler.inFlight()).isZero();
        assertThat(steps.closed).hasValue(1);
    }

    @Test
    void cancelsItsSteps() {
        step("first I=IN O=mid");
        step("second I=mid O=OUT");
        start("OUT");
        Cancellation cancellation = send(1);
        cancellation.cancel();

        FakeSteps.Call first = call(0);
        assertThat(first.cancelled).isTrue();
        assertThat(client.hasEnded()).isFalse();
        first.respond(Map.of("O", 2L), true); // too late

        assertThat(steps.calls).isEmpty();
        assertThat(client.error).isNotNull().satisfies(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(error.publicMessage()).isEqualTo("request was cancelled");
        });
        assertThat(meter.read().failures()).isEqualTo(Map.of(FailureReason.CANCELED, 1L));
    }

    /** A step that was submitted ends or goes on with the sequence itself. */
    @Test
    void endsTheSequenceOfACancelledRequestAtTheStepsThatItDoesNotReach() {
        step("first I=IN O=mid");
        step("second I=mid O=OUT");
        start("OUT");
        options = new RequestOptions(
                0, 0, OptionalLong.empty(), Optional.of(new Sequence(new Sequence.Id.Numeric(7), false, false)));
        Cancellation cancellation = send(1);
        cancellation.cancel();
        call(0).respond(Map.of("O", 2L), true);
        assertThat(steps.cancelled).containsExactly(new Sequence.Id.Numeric(7) + " at 1");

        steps.cancelled.clear();
        client = new EnsembleClient();
        Cancellation late = send(1);
        call(0).respond(Map.of("O", 2L), true);
        late.cancel();
        call(1).respond(Map.of("O", 3L), true);
        assertThat(steps.cancelled).isEmpty();

        scheduler.cancelled(options, clock.getAsLong());
        assertThat(steps.cancelled)
                .containsExactly(new Sequence.Id.Numeric(7) + " at 0", new Sequence.Id.Numeric(7) + " at 1");
        assertThat(meter.read().failures()).isEqualTo(Map.of(FailureReason.CANCELED, 3L));
    }

    /** A model that was replaced by one that behaves otherwise must not hang a request. */
    @Test
    void failsWhenAStepEndsWithoutResponse() {
        step("first I=IN O=OUT");
        start("OUT");
        send(1);
        call(0).complete();

        assertThat(client.error).isNotNull().satisfies(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(error.publicMessage())
                    .isEqualTo("in ensemble 'e', [request id: x] unexpected deadlock, at least one output is not set"
                            + " while no more ensemble steps can be made");
        });
    }

    @Test
    void refusesASecondResponse() {
        step("first I=IN O=mid");
        step("second I=mid O=OUT");
        start("OUT");
        send(1);
        FakeSteps.Call first = call(0);
        first.respond(Map.of("O", 2L), false);
        first.respond(Map.of("O", 3L), true);
        call(1).respond(Map.of("O", 4L), true);

        assertThat(client.error)
                .isNotNull()
                .satisfies(error -> assertThat(error.publicMessage())
                        .startsWith("in ensemble 'e', model 'first' sent a second response"));
    }

    @Test
    void givesStepsTheRemainingTime() {
        step("first I=IN O=mid");
        step("second I=mid O=more");
        step("third I=more O=OUT");
        start("OUT");
        options = new RequestOptions(0, 1_000, OptionalLong.of(77), Optional.empty());
        send(1);
        assertThat(call(0).request.options().timeoutMicros()).isEqualTo(1_000);

        clock.advance(Duration.ofNanos(TimeUnit.MICROSECONDS.toNanos(400)));
        call(0).respond(Map.of("O", 2L), true);
        assertThat(call(1).request.options().timeoutMicros()).isEqualTo(600);
        assertThat(call(1).request.options().deadlineNanos()).hasValue(77);

        clock.advance(Duration.ofSeconds(1));
        call(1).respond(Map.of("O", 2L), true);
        assertThat(call(2).request.options().timeoutMicros())
                .as("0 would mean none")
                .isOne();
        call(2).respond(Map.of("O", 2L), true);
    }

    /** The sequence that a step sets by parameters holds for the steps after it. */
    @Test
    void marksSequences() {
        step("first I=IN O=mid");
        step("second I=mid O=OUT");
        start("OUT");
        send(1);
        call(0).respond(
                        Map.of("O", 2L),
                        Map.of(
                                "sequence_id", new ParameterValue.Text("s"),
                                "sequence_end", new ParameterValue.Bool(true),
                                "other", new ParameterValue.Int(1)),
                        true);
        assertThat(call(1).request.options().sequence()).contains(new Sequence(new Sequence.Id.Text("s"), false, true));

        call(1).respond(Map.of("O", 2L), Map.of("sequence_end", new ParameterValue.Int(1)), true);
        assertThat(client.error)
                .isNotNull()
                .satisfies(error -> assertThat(error.publicMessage())
                        .isEqualTo(
                                "in ensemble 'e', expect parameter 'sequence_end' to be TRITONSERVER_PARAMETER_BOOL"));
    }

    /** Responses are joined by their number, with tensors from before the step too, and come in its order. */
    @Test
    void joinsResponsesByTheirNumber() {
        step("many I=IN O=one,P=two !");
        step("slow I=one O=a");
        step("fast I=two O=b");
        step("before I=IN O=c");
        step("join I=a,J=b,K=c O=OUT");
        start("OUT");
        send(1);
        FakeSteps.Call many = call(0);
        many.respond(Map.of("O", 10L, "P", 20L), false);
        many.respond(Map.of("O", 11L, "P", 21L), true);
        call(3).respond(Map.of("O", 7L), true);
        List<FakeSteps.Call> slow = calls(1);
        List<FakeSteps.Call> fast = calls(2);
        fast.get(0).respond(Map.of("O", 200L), true);
        fast.get(1).respond(Map.of("O", 201L), true);
        slow.get(1).respond(Map.of("O", 101L), true);

        assertThat(call(4).inputs()).isEqualTo(Map.of("I", 101L, "J", 201L, "K", 7L));
        call(4).respond(Map.of("O", 1L), true);
        assertThat(client.responses).as("before the first").isEmpty();

        slow.get(0).respond(Map.of("O", 100L), true);
        assertThat(call(4).inputs()).isEqualTo(Map.of("I", 100L, "J", 200L, "K", 7L));
        call(4).respond(Map.of("O", 0L), true);
        assertThat(client.responses).containsExactly(Map.of("OUT", 0L), Map.of("OUT", 1L));
        assertThat(client.terminals).isOne();
    }

    @Test
    void endsWithoutResponsesIfTheStepHasNone() {
        step("many I=IN O=one !");
        step("next I=one O=OUT");
        start("OUT");
        send(1);
        call(0).complete();

        assertThat(client.responses).isEmpty();
        assertThat(client.error).isNull();
        assertThat(client.terminals).isOne();
        assertThat(meter.read().executions().executionCount()).isOne();
    }

    /** Later steps catch up in one pass, after which nothing else happens that could wake the producer. */
    @Test
    void aProducerGoesOnWhenAllWaitedForTheFirst() {
        step("many I=IN O=one !");
        step("next I=one O=OUT");
        start("OUT");
        send(1);
        FakeSteps.Call many = call(0);
        for (int i = 0; i < 64; i++) {
            many.respond(Map.of("O", (long) i), false);
        }
        List<String> opened = new ArrayList<>();
        many.observer.flow().whenOpen(() -> opened.add("opened"));
        List<FakeSteps.Call> next = calls(1);
        for (int i = 63; i >= 0; i--) {
            next.get(i).respond(Map.of("O", 1L), true);
        }

        assertThat(client.responses).hasSize(64);
        assertThat(opened).hasSize(1);
        many.complete();
        assertThat(client.hasEnded()).isTrue();
    }

    /** Everything behind the inner producer waits for it: if it paused too, the request would never end. */
    @Test
    void anInnerProducerDoesNotPauseForTheOuterOne() {
        step("many I=IN O=one !");
        step("more I=one O=OUT !");
        start("OUT");
        send(1);
        FakeSteps.Call many = call(0);
        for (int i = 0; i < 64; i++) {
            many.respond(Map.of("O", (long) i), false);
        }

        assertThat(many.observer.flow().isOpen()).isFalse();
        assertThat(calls(1).getFirst().observer.flow().isOpen()).isTrue();

        many.complete();
        for (FakeSteps.Call more : calls(1)) {
            more.respond(Map.of("O", 1L), false);
            more.complete();
        }
        assertThat(client.hasEnded()).isTrue();
    }

    /** The failure of one response fails the request; what was sent stays. */
    @Test
    void failsWithAFailedResponse() {
        step("many I=IN O=OUT !");
        start("OUT");
        send(1);
        FakeSteps.Call many = call(0);
        many.respond(Map.of("O", 1L), false);
        many.observer.onFailedResponse(new InferenceException(ErrorCode.INTERNAL, "bad token"));
        assertThat(many.cancelled).isTrue();
        many.complete();

        assertThat(client.responses).containsExactly(Map.of("OUT", 1L));
        assertThat(client.error)
                .isNotNull()
                .satisfies(error ->
                        assertThat(error.publicMessage()).isEqualTo("in ensemble 'e', bad token (step 'many')"));
    }

    /** The limit counts the requests of all requests to the ensemble; those that wait may leave. */
    @Test
    void limitsTheRequestsInFlight() {
        step("first I=IN O=OUT");
        start(new EnsembleLimits(1), "OUT");
        EnsembleClient second = new EnsembleClient();
        EnsembleClient third = new EnsembleClient();
        send(client, 1);
        Cancellation cancellation = send(second, 2);
        send(third, 3);
        assertThat(call(0).inputs()).isEqualTo(Map.of("I", 1L));

        cancellation.cancel();
        assertThat(second.hasEnded()).isTrue();
        call(0).respond(Map.of("O", 1L), true);
        assertThat(call(0).inputs()).isEqualTo(Map.of("I", 3L));
        call(0).respond(Map.of("O", 3L), true);
        assertThat(third.responses).containsExactly(Map.of("OUT", 3L));

        send(new EnsembleClient(), 4);
        call(0).respond(Map.of("O", 4L), true);
    }

    /** However long the wait: the reference goes on after 300 seconds. */
    @Test
    void endsTheWaitForTheLimitInTime() {
        step("first I=IN O=OUT");
        start(new EnsembleLimits(1), "OUT");
        send(1);
        EnsembleClient late = new EnsembleClient();
        options = new RequestOptions(
                0, 0, OptionalLong.of(clock.getAsLong() + Duration.ofHours(1).toNanos()), Optional.empty());
        send(late, 2);
        clock.advance(Duration.ofMinutes(10));
        timer.runExpired(clock.getAsLong());
        assertThat(late.hasEnded()).isFalse();

        clock.advance(Duration.ofHours(1));
        timer.runExpired(clock.getAsLong());
        assertThat(late.error).isNotNull().satisfies(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(error.publicMessage()).isEqualTo("in ensemble 'e', request was cancelled");
        });
        call(0).respond(Map.of("O", 1L), true);
        assertThat(client.responses).hasSize(1);
    }

    /** Such as for models that are loaded on demand. Models that come later are released. */
    @Test
    void endsTheWaitForModelsInTime() {
        step("first I=IN O=OUT");
        start("OUT");
        steps.deferAcquisitions();
        options = new RequestOptions(
                0, 0, OptionalLong.of(clock.getAsLong() + Duration.ofSeconds(2).toNanos()), Optional.empty());
        send(1);
        clock.advance(Duration.ofSeconds(1));
        timer.runExpired(clock.getAsLong());
        assertThat(steps.acquisitionCancelled).isFalse();

        clock.advance(Duration.ofSeconds(2));
        timer.runExpired(clock.getAsLong());
        assertThat(steps.acquisitionCancelled).isTrue();
        steps.acquire(steps.acquiring.getFirst());

        assertThat(steps.calls).isEmpty();
        assertThat(steps.closed).hasValue(1);
        assertThat(memory.buffersInUse()).isZero();
        assertThat(client.error)
                .isNotNull()
                .satisfies(
                        error -> assertThat(error.publicMessage()).isEqualTo("in ensemble 'e', request was cancelled"));
        assertThat(scheduler.inFlight()).isZero();
    }

    /** The timeout of the request counts too, from its arrival. */
    @Test
    void endsTheWaitForModelsWithTheTimeout() {
        step("first I=IN O=OUT");
        start("OUT");
        steps.deferAcquisitions();
        options = new RequestOptions(0, 5_000_000, OptionalLong.empty(), Optional.empty());
        send(1);
        clock.advance(Duration.ofSeconds(6));
        timer.runExpired(clock.getAsLong());
        steps.acquiring.getFirst().failed(new InferenceException(ErrorCode.CANCELLED, "request was cancelled"));

        assertThat(client.error)
                .isNotNull()
                .satisfies(error ->
                        assertThat(error.publicMessage()).isEqualTo("in ensemble 'e', Request timeout expired"));
    }

    /** A wait that ends in time ends the timeout. */
    @Test
    void goesOnAfterAWaitForModels() {
        step("first I=IN O=OUT");
        start("OUT");
        steps.deferAcquisitions();
        options = new RequestOptions(
                0, 0, OptionalLong.of(clock.getAsLong() + Duration.ofSeconds(2).toNanos()), Optional.empty());
        send(1);
        steps.acquire(steps.acquiring.getFirst());
        clock.advance(Duration.ofSeconds(3));
        timer.runExpired(clock.getAsLong());
        call(0).respond(Map.of("O", 2L), true);

        assertThat(client.responses).containsExactly(Map.of("OUT", 2L));
    }

    /** Its models stay those of its begin. */
    @Test
    void keepsItsModelsWhenTheyAreLoadedAgain() {
        step("first I=IN O=mid");
        step("second I=mid O=OUT");
        start("OUT");
        send(1);
        steps.reload();
        call(0).respond(Map.of("O", 2L), true);

        assertThat(call(1).generation).isZero();
        call(1).respond(Map.of("O", 2L), true);
        send(new EnsembleClient(), 1);
        assertThat(call(0).generation).isOne();
        call(0).respond(Map.of("O", 2L), true);
        call(1).respond(Map.of("O", 2L), true);
    }

    /** Steps that are executed on the stack of their submission do not deepen it. */
    @Test
    void executesALongChainOfDirectSteps() {
        int count = 1000;
        for (int i = 0; i < count; i++) {
            step("m I=" + (i == 0 ? "IN" : "t" + i) + " O=" + (i == count - 1 ? "OUT" : "t" + (i + 1)));
        }
        start("OUT");
        steps.executeDirectly(call -> call.respond(Map.of("O", call.inputs().get("I") + 1), true));
        send(1);

        assertThat(client.responses).containsExactly(Map.of("OUT", 1001L));
        assertThat(memory.buffersInUse()).isZero();
    }

    /** The end of one step grants the next, whose end grants the next: not on one stack. */
    @Tag("slow")
    @Test
    void grantsManyStepsThatWait() {
        step("first I=IN O=OUT");
        start(new EnsembleLimits(1), "OUT");
        send(1);
        List<EnsembleClient> others = new ArrayList<>();
        for (int i = 0; i < 20_000; i++) {
            EnsembleClient other = new EnsembleClient();
            others.add(other);
            send(other, i);
        }
        FakeSteps.Call first = call(0);
        steps.executeDirectly(call -> call.respond(Map.of("O", 7L), true));
        first.respond(Map.of("O", 7L), true);

        assertThat(client.responses).hasSize(1);
        assertThat(others).allSatisfy(other -> assertThat(other.responses).containsExactly(Map.of("OUT", 7L)));
        assertThat(memory.buffersInUse()).isZero();
    }

    /** So do steps that are refused at once. */
    @Tag("slow")
    @Test
    void refusesManyStepsThatWait() {
        step("first I=IN O=OUT");
        start(new EnsembleLimits(1), "OUT");
        send(1);
        List<EnsembleClient> others = new ArrayList<>();
        for (int i = 0; i < 20_000; i++) {
            EnsembleClient other = new EnsembleClient();
            others.add(other);
            send(other, i);
        }
        FakeSteps.Call first = call(0);
        steps.executeDirectly(call -> call.fail(new InferenceException(ErrorCode.UNAVAILABLE, "no luck")));
        first.respond(Map.of("O", 7L), true);

        assertThat(others)
                .allSatisfy(other -> assertThat(other.error)
                        .isNotNull()
                        .satisfies(error -> assertThat(error.publicMessage())
                                .isEqualTo("in ensemble 'e', no luck (step 'first')")));
        assertThat(memory.buffersInUse()).isZero();
    }

    /** A decoupled step pauses while its client does not read, and while later steps are behind. */
    @Test
    void passesTheFlowOn() {
        step("many I=IN O=one !");
        step("next I=one O=OUT");
        FakeFlow flow = new FakeFlow();
        client = new EnsembleClient(flow);
        start(new EnsembleLimits(1), "OUT");
        send(1);
        FakeSteps.Call many = call(0);
        assertThat(many.observer.flow().isOpen()).isTrue();

        flow.close();
        assertThat(many.observer.flow().isOpen()).isFalse();
        List<String> opened = new ArrayList<>();
        many.observer.flow().whenOpen(() -> opened.add("by the client"));
        assertThat(opened).isEmpty();
        flow.open();
        assertThat(opened).containsExactly("by the client");

        many.respond(Map.of("O", 1L), false);
        assertThat(many.observer.flow().isOpen()).isTrue();
        many.respond(Map.of("O", 2L), false);
        assertThat(many.observer.flow().isOpen()).as("one waits").isFalse();
        many.observer.flow().whenOpen(() -> opened.add("by the next step"));
        call(1).respond(Map.of("O", 1L), true);
        assertThat(opened).containsExactly("by the client", "by the next step");

        call(1).respond(Map.of("O", 2L), true);
        many.complete();
        assertThat(client.responses).hasSize(2);
    }

    /** A model that does not mind the flow is buffered up to a limit; then its request alone fails. */
    @Test
    void failsWhenTooMuchWaits() {
        step("many I=IN O=one !");
        step("next I=one O=OUT");
        start(new EnsembleLimits(1, 8 * 520L), "OUT");
        send(1);
        FakeSteps.Call many = call(0);
        for (int i = 0; i < 8; i++) {
            many.respond(Map.of("O", 1L), false);
        }
        assertThat(many.cancelled).isFalse();
        many.respond(Map.of("O", 1L), false);
        assertThat(many.cancelled).isTrue();
        many.complete();
        call(1).respond(Map.of("O", 1L), true);

        assertThat(client.error).isNotNull().satisfies(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(error.publicMessage())
                    .startsWith("in ensemble 'e', responses of model 'many' that wait for later steps exceed 4160"
                            + " bytes");
        });
    }

    /**
     * Outputs that wait behind a slow response are limited too: steps whose outputs would have to wait are not submitted,
     * the producer pauses, and nothing fails. Each response counts 520 bytes.
     */
    @Test
    void holdsStepsBackWhoseOutputsWouldWait() {
        step("many I=IN O=one !");
        step("next I=one O=OUT");
        start(new EnsembleLimits(0, 8 * 520L), "OUT");
        send(1);
        FakeSteps.Call many = call(0);
        for (long i = 1; i <= 5; i++) {
            many.respond(Map.of("O", i), false);
        }
        assertThat(callsTo(1)).as("no size is known").containsExactly(1L, 2L, 3L, 4L, 5L);
        for (long i = 2; i <= 5; i++) {
            respondTo(i);
        }
        many.respond(Map.of("O", 6L), false);
        assertThat(callsTo(1)).as("6 responses, 4 outputs").containsExactly(1L);
        assertThat(many.observer.flow().isOpen()).isFalse();
        assertThat(client.responses).isEmpty();

        respondTo(1L);
        assertThat(client.responses).hasSize(5);
        assertThat(callsTo(1)).containsExactly(6L);
        assertThat(many.observer.flow().isOpen()).isTrue();
        many.complete();
        respondTo(6L);
        assertThat(client.responses)
                .extracting(response -> response.get("OUT"))
                .containsExactly(1L, 2L, 3L, 4L, 5L, 6L);
    }

    @Test
    void expectsOutputsOfTheSizeInEarlierRequests() {
        step("many I=IN O=one !");
        step("next I=one O=OUT");
        start(new EnsembleLimits(0, 8 * 520L), "OUT");
        send(1);
        call(0).respond(Map.of("O", 1L), true);
        respondTo(1L);

        client = new EnsembleClient();
        send(2);
        FakeSteps.Call many = call(0);
        for (long i = 1; i <= 5; i++) {
            many.respond(Map.of("O", i), false);
        }
        assertThat(callsTo(1)).as("4 responses, 4 outputs").containsExactly(1L, 2L, 3L, 4L);
        many.complete();
        for (long i = 1; i <= 5; i++) {
            respondTo(i);
        }
        assertThat(client.responses).hasSize(5);
    }

    /** Completes the request to the second step that has an input. */
    private void respondTo(long input) {
        steps.calls.stream()
                .filter(call -> call.step == 1 && call.inputs().containsValue(input))
                .findFirst()
                .orElseThrow()
                .respond(Map.of("O", input), true);
    }

    private List<Long> callsTo(int step) {
        return steps.calls.stream()
                .filter(call -> call.step == step)
                .flatMap(call -> call.inputs().values().stream())
                .toList();
    }

    @Test
    void isAbandonedAtShutdown() {
        step("first I=IN O=OUT");
        start("OUT");
        send(1);
        scheduler.abandon();
        assertThat(client.error)
                .isNotNull()
                .satisfies(error -> assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE));
        assertThat(call(0).cancelled).isTrue();
        assertThat(scheduler.inFlight()).isOne();

        call(0).respond(Map.of("O", 1L), true);
        scheduler.close();
        EnsembleClient late = new EnsembleClient();
        send(late, 2);
        assertThat(late.error)
                .isNotNull()
                .satisfies(error -> assertThat(error.publicMessage())
                        .isEqualTo(
                                "[request id: x] Server is stopping, scheduler for model has stopped accepting new inference"
                                        + " requests"));
    }
}
