package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests what requests, batches and contexts of the testkit offer to backends of sequences and devices. */
final class FakeRequestTest {
    private static final MemoryPlace GPU = new MemoryPlace(MemoryPlace.Kind.GPU, 1);

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings settings = ModelSettings.builder("m", 1)
            .maxBatchSize(4)
            .input(TensorSpec.of("IN", DataType.INT8, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.INT8, Shape.of(2)))
            .build();

    @Test
    void hasWhatTheTestConfigures() {
        Sequence position = new Sequence(new Sequence.Id.Numeric(3), true, false);
        FakeRequest request = new FakeRequest(1, List.of())
                .withId("r")
                .withParameter("p", 1)
                .withParameter("text", "t")
                .withParameter("half", 0.5)
                .withParameter("flag", true)
                .withSequence(position)
                .withDeadlineNanos(5)
                .asNullRequest();

        assertThat(request.id()).isEqualTo("r");
        assertThat(request.parameters().asMap()).isEqualTo(Map.of("p", 1L, "text", "t", "half", 0.5, "flag", true));
        assertThat(request.parameters().integer("p", 1, 9)).hasValue(1);
        assertThat(request.sequence()).contains(position);
        assertThat(request.deadlineNanos()).isEqualTo(OptionalLong.of(5));
        assertThat(request.isNullRequest()).isTrue();
        assertThat(new FakeRequest(1, List.of()).isNullRequest()).isFalse();
    }

    @Test
    void namesTheInputThatIsMissing() {
        FakeRequest request = new FakeRequest(1, List.of()).with("IN", bytes(1, 2));

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> request.requireInput("IM"))
                .withMessage("input 'IM': not in the request (it has: [IN])")
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void namesInputsInEachFormAndTheErrorOfAWrongType() {
        FakeRequest one = new FakeRequest(1, List.of("OUT")).with("IN", bytes(1, 2));
        FakeRequest two = new FakeRequest(1, List.of("OUT")).with("IN", bytes(3, 4));
        try (FakeBatch single = new FakeBatch(settings, memory, one);
                FakeBatch both = new FakeBatch(settings, memory, one, two).withDevice(GPU)) {
            assertThat(one.requireInput("IN").name()).contains("IN");
            assertThat(single.gather("IN").name()).contains("IN");
            assertThat(both.gather("IN").name()).contains("IN");
            assertThat(both.gather("IN", GPU).name()).contains("IN");
            assertThat(both.gather("IN").doubles()).containsExactly(1, 2, 3, 4);
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> both.gather("IN").strings())
                    .withMessage("tensor 'IN': INT8 [2,2] (expected: BYTES; INT8 is read by ints())");
        }
    }

    @Test
    void recordsStatesOnce() {
        FakeRequest request = new FakeRequest(1, List.of()).withState("STATE", memory);
        try (FakeBatch batch = new FakeBatch(settings, memory, request)) {
            SequenceState state = request.state("STATE");
            assertThat(request.state("STATE")).isSameAs(state);
            Tensor value = state.allocate(DataType.INT8, Shape.of(1, 2), GPU);

            assertThat(value.place()).isEqualTo(GPU);
            assertThat(request.writtenState("STATE")).contains(value);
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> state.put(bytes(1, 2)))
                    .withMessage("state 'STATE': written twice");
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> request.state("STATUS"))
                    .withMessage("state 'STATUS': the model has no states");
            assertThat(batch.state("STATE").allocateBytes(Shape.of(1), 9).byteSize())
                    .isEqualTo(9);
            assertThat(batch.writtenState("STATE")).isPresent();
            assertThatExceptionOfType(BackendException.class).isThrownBy(() -> batch.state("STATUS"));
        }
        assertThat(memory.buffersInUse()).isZero();
    }

    @Test
    void reschedulesIterativeRequestsAlone() {
        FakeRequest iterative = new FakeRequest(1, List.of()).asIterative();
        FakeBatch batch = new FakeBatch(settings, memory, iterative);
        iterative.reschedule();
        assertThatIllegalStateException().isThrownBy(iterative::reschedule);
        batch.close();

        assertThat(iterative.isRescheduled()).isTrue();
        assertThat(iterative.isComplete()).isFalse();
        FakeRequest complete = new FakeRequest(1, List.of()).asIterative();
        new FakeBatch(settings, memory, complete).close();
        assertThatIllegalStateException().isThrownBy(complete::reschedule);
        assertThatIllegalStateException().isThrownBy(new FakeRequest(1, List.of())::reschedule);
    }

    @Test
    void keepsAResponseUntilTheBatchIsClosed() {
        FakeRequest request = new FakeRequest(1, List.of("OUT")).withResponse(memory);
        try (FakeBatch batch = new FakeBatch(settings, memory, request)) {
            request.response().allocate("OUT", DataType.INT8, Shape.of(1, 2));
            request.response().parameter("p", true);
            request.response().parameter("q", 1);
            request.response().parameter("q", 0.5);
            request.response().parameter("r", 2);
            request.response().parameter("s", "text");

            assertThat(batch.requests()).hasSize(1);
            assertThat(request.outputs()).containsKey("OUT");
            assertThat(request.responseParameters().asMap())
                    .isEqualTo(Map.of("p", true, "q", 0.5, "r", 2L, "s", "text"));
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> request.response().allocate("OUT", DataType.INT8, Shape.of(1, 2)))
                    .withMessage("output 'OUT': returned twice");
        }
        assertThat(memory.buffersInUse()).isZero();
    }

    @Test
    void gathersAndAllocatesOnADevice() {
        FakeRequest one = new FakeRequest(1, List.of("OUT")).with("IN", bytes(1, 2));
        FakeRequest two = new FakeRequest(1, List.of("OUT")).with("IN", bytes(3, 4));
        try (FakeBatch batch = new FakeBatch(settings, memory, one, two).withDevice(GPU)) {
            Tensor in = batch.gather("IN", GPU);
            assertThat(in.place()).isEqualTo(GPU);
            assertThat(in.data().toArray(ValueLayout.JAVA_BYTE)).containsExactly(1, 2, 3, 4);
            assertThat(batch.gather("IN", MemoryPlace.HOST).place()).isEqualTo(MemoryPlace.HOST);

            Tensor out = batch.allocate("OUT", DataType.INT8, Shape.of(2, 2), GPU);
            assertThat(out.place()).isEqualTo(GPU);
            assertThat(batch.outputs()).containsEntry("OUT", out);
            MemoryPlace other = new MemoryPlace(MemoryPlace.Kind.GPU, 0);
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> batch.gather("IN", other))
                    .extracting(BackendException::code)
                    .isEqualTo(ErrorCode.UNSUPPORTED);
        }
    }

    @Test
    void allocatesScratchMemory() {
        FakeInstanceContext context = new FakeInstanceContext("m_0_0", Device.CPU, List.of(), memory);

        AllocatedMemory scratch = context.allocate(new MemoryPlace(MemoryPlace.Kind.PINNED, 0), 100);
        assertThat(scratch.place()).isEqualTo(MemoryPlace.HOST);
        assertThat(scratch.segment().byteSize()).isEqualTo(100);
        scratch.close();
        scratch.close();
        assertThat(memory.buffersInUse()).isZero();
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> context.allocate(GPU, 8))
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.UNSUPPORTED);
    }

    @Test
    void failsOnADeferredExecutionThatIsNotComplete() {
        FakeBatch batch = new FakeBatch(settings, memory, new FakeRequest(1, List.of()));
        var _ = batch.defer();

        assertThatIllegalStateException().isThrownBy(batch::defer);
        assertThatThrownBy(batch::close)
                .isInstanceOf(AssertionError.class)
                .hasMessage("deferred execution: open (expected: complete)");
    }

    @Test
    void aDeferredExecutionFailsTheOpenRequests() {
        BackendException early = new BackendException(ErrorCode.INTERNAL, "early");
        BackendException late = new BackendException(ErrorCode.INTERNAL, "late");
        FakeRequest one = new FakeRequest(1, List.of());
        FakeRequest two = new FakeRequest(1, List.of());
        try (FakeBatch batch = new FakeBatch(settings, memory, one, two)) {
            var execution = batch.defer();
            one.fail(early);
            execution.fail(late);
            execution.complete();
        }

        assertThat(one.failure()).contains(early);
        assertThat(two.failure()).contains(late);
    }

    private static Tensor bytes(int... bytes) {
        var data = Arena.ofAuto().allocate(bytes.length);
        for (int i = 0; i < bytes.length; i++) {
            data.set(ValueLayout.JAVA_BYTE, i, (byte) bytes[i]);
        }
        return Tensor.of(DataType.INT8, Shape.of(1, bytes.length), data);
    }

    @Test
    void aRequestWithoutAResponseNamesTheMethodThatGivesOne() {
        FakeRequest request = new FakeRequest(1, List.of());
        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(request::response)
                .withMessageContaining("withResponse(LeakCheckingMemory)");
    }
}
