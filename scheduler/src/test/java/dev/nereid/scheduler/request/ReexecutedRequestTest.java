package dev.nereid.scheduler.request;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.batch.ResponseStream;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A request between two executions, step by step: what others do at each moment. */
final class ReexecutedRequestTest {
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .decoupled(true)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final ModelScope scope = Scopes.of(model, memory, () -> 0);
    private final RecordingObserver observer = new RecordingObserver();
    private final List<String> ran = new ArrayList<>();
    private final RequestDrain instance = new RequestDrain();
    private final ExecutionScope executions = ExecutionScope.of(scope, AcceptedMemory.HOST, Thread::startVirtualThread);
    private final ScheduledRequest request = new ScheduledRequest(
            scope, null, Requests.to(model, memory).floats("IN", Shape.of(2), 1).of(1), observer, 0);

    @AfterEach
    void allIsReleased() {
        observer.check();
        observer.close();
        assertThat(scope.drain().count()).as("in flight").isZero();
        assertThat(instance.count()).as("on the instance").isZero();
        memory.close();
    }

    private void begin() {
        assertThat(request.begin()).isTrue();
    }

    private ResponseStream open() {
        ResponseStream stream = new ResponseStream(executions, request, null);
        request.delivery().open(stream);
        return stream;
    }

    private void complete(int execution) {
        request.complete(ResponseEvent.END, execution);
        request.release();
    }

    /** The cancellation comes too late for the first execution, and too early for the queue. */
    @Test
    void runsTheActionOfAnExecutionThatBeginsCancelled() {
        begin();
        assertThat(request.closeActions()).isTrue();
        request.cancel();
        assertThat(request.reschedule(1, 0)).isTrue();

        begin(); // another instance, before the thread that queued the request goes on
        assertThat(request.isCancelled()).isTrue();
        request.onCancel(() -> ran.add("second"), 2);
        assertThat(ran).containsExactly("second");
        request.checkQueued();

        assertThat(ran).containsExactly("second");
        complete(2);
        observer.assertError(ErrorCode.CANCELLED, "request was cancelled");
    }

    /** The response lies in memory of the instance, which would be closed before. */
    @Test
    void keepsTheInstanceForAResponseThatCompletesTheRequestAtTheEndOfAnExecution() {
        begin();
        use();
        ResponseStream stream = open();
        assertThat(request.closeActions()).isTrue();

        stream.complete(response(stream));

        assertThat(request.reschedule(1, 0)).isFalse();
        request.release();
        assertThat(observer.responses()).hasSize(1);
        assertThat(instance.count()).as("on the instance").isEqualTo(1);
        observer.close();
        assertThat(ran).containsExactly("released");
    }

    @Test
    void keepsTheInstanceOfAnEarlierExecutionForAnOpenResponse() {
        begin();
        ResponseStream stream = open();
        for (int i = 1; i <= 3; i++) {
            use();
            stream.send(response(stream));
            assertThat(request.closeActions()).isTrue();
            assertThat(request.reschedule(i, 0)).isTrue();
            assertThat(instance.count()).as("on the instance").isEqualTo(1);
            begin();
        }
        observer.responses().forEach(InferResponse::close);
        use();
        assertThat(request.closeActions()).isTrue();
        assertThat(request.reschedule(4, 0)).isTrue();

        assertThat(instance.count()).as("on the instance").isZero();
        stream.complete();
    }

    private InferenceResponse response(ResponseStream stream) {
        InferenceResponse response = stream.newResponse();
        Tensor own = Tensor.of(DataType.FP32, Shape.of(2), Arena.ofAuto().allocate(8));
        response.put("OUT", own, () -> ran.add("released"));
        return response;
    }

    /** Counts the request at the instance, as a worker does before an execution. */
    private void use() {
        instance.register();
        assertThat(request.usedBy(instance)).isTrue();
    }
}
