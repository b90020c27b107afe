package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.api.Cancellation;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.ComputeTimings;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.ResponseStatistics;
import dev.nereid.api.statistics.Timing;
import dev.nereid.scheduler.instance.InstanceWorker;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.scheduler.statistics.MeterReading;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseReport;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeClock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** Statistics of requests, which are counted before the client is notified. */
final class CountingTest {
    private static final ModelSettings COPY = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    private static final ModelSettings DECOUPLED = ModelSettings.builder("d", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .decoupled(true)
            .build();

    private final AtomicReference<FakeClock> clock = new AtomicReference<>();

    private void pass(long nanos) {
        clock.get().advanceNanos(nanos);
    }

    private Execution of(ModelSettings model, FakeInstance.Execution backend) {
        Execution execution = new Execution(model, backend);
        clock.set(execution.scheduler.clock);
        return execution;
    }

    private static MeterReading read(Execution execution) {
        return execution.scheduler.model.meter().read();
    }

    @Test
    void anExecutionAndItsRequests() {
        try (Execution execution = of(COPY, batch -> {
            pass(10);
            batch.inputsRead();
            FakeInstance.copy(batch);
            pass(200);
            batch.outputsComputed();
            pass(3000);
        })) {
            Execution.submit(execution, 1, 2);
            pass(40_000);
            assertThat(execution.scheduler.queue.waiting()).isEqualTo(2);

            execution.run();

            assertThat(execution.scheduler.queue.waiting()).isZero();
            MeterReading read = read(execution);
            assertThat(read.executions().inferenceCount()).isEqualTo(3);
            assertThat(read.executions().executionCount()).isEqualTo(1);
            assertThat(read.executions().lastInferenceMillis()).isPositive();
            assertThat(read.inferences().success()).isEqualTo(new Timing(2, 2 * 43_210));
            assertThat(read.inferences().queue()).isEqualTo(new Timing(2, 80_000));
            assertThat(read.inferences().compute().input()).isEqualTo(new Timing(2, 20));
            assertThat(read.inferences().compute().infer()).isEqualTo(new Timing(2, 400));
            assertThat(read.inferences().compute().output()).isEqualTo(new Timing(2, 6000));
            assertThat(read.inferences().fail()).isEqualTo(Timing.NONE);
            assertThat(read.executions().batches())
                    .containsExactly(new BatchStatistics(
                            3, new ComputeTimings(new Timing(1, 10), new Timing(1, 200), new Timing(1, 3000))));
        }
    }

    @Test
    void aBackendThatMarksNothingComputesAllTheTime() {
        try (Execution execution = of(COPY, batch -> {
            FakeInstance.copy(batch);
            pass(70);
        })) {
            Execution.submit(execution, 1);
            execution.run();

            assertThat(read(execution).executions().batches())
                    .containsExactly(new BatchStatistics(
                            1, new ComputeTimings(new Timing(1, 0), new Timing(1, 70), new Timing(1, 0))));
        }
    }

    @Test
    void anExecutionThatThrows() {
        try (Execution execution = of(COPY, batch -> {
            throw new BackendException(ErrorCode.INTERNAL, "broken");
        })) {
            Execution.submit(execution, 1, 2);
            pass(5);
            execution.run();

            MeterReading read = read(execution);
            assertThat(read.executions().executionCount()).isZero();
            assertThat(read.executions().inferenceCount()).isZero();
            assertThat(read.failures()).isEqualTo(Map.of(FailureReason.BACKEND, 2L));
            assertThat(read.inferences().fail()).isEqualTo(new Timing(2, 10));
        }
    }

    @Test
    void aRequestThatItsBackendFailsAlone() {
        try (Execution execution = of(COPY, batch -> {
            List<InferenceRequest> requests = batch.requests();
            requests.getFirst().fail(new BackendException(ErrorCode.UNAVAILABLE, "not this one"));
            InferenceRequest good = requests.get(1);
            good.response().put("OUT", good.input("IN").orElseThrow(), () -> {});
        })) {
            Execution.submit(execution, 1, 2);
            execution.run();

            MeterReading read = read(execution);
            assertThat(read.failures()).isEqualTo(Map.of(FailureReason.BACKEND, 1L));
            assertThat(read.inferences().fail().count()).isEqualTo(1);
            assertThat(read.inferences().success().count()).isEqualTo(1);
            assertThat(read.executions().inferenceCount()).isEqualTo(2);
            assertThat(read.executions().batches())
                    .extracting(BatchStatistics::batchSize)
                    .containsExactly(3L);
        }
    }

    @Test
    void aCancellationWhileWaitingAndOneWhileExecuting() {
        AtomicReference<Execution> itself = new AtomicReference<>();
        try (Execution execution = of(COPY, batch -> {
            itself.get().requests.get(1).cancel();
            FakeInstance.copy(batch);
        })) {
            itself.set(execution);
            Execution.submit(execution, 1, 1, 1);
            execution.requests.get(0).cancel();
            assertThat(read(execution).failures()).isEqualTo(Map.of(FailureReason.CANCELED, 1L));

            execution.run();

            MeterReading read = read(execution);
            assertThat(read.failures()).isEqualTo(Map.of(FailureReason.CANCELED, 2L));
            assertThat(read.inferences().success().count()).isEqualTo(1);
            assertThat(read.executions().executionCount()).isEqualTo(1);
            assertThat(read.executions().batches())
                    .extracting(BatchStatistics::batchSize)
                    .containsExactly(2L);
        }
    }

    @Test
    void aDeadlineInTheQueue() {
        try (Execution execution = of(COPY, FakeInstance::copy)) {
            execution.submit(execution
                    .request()
                    .deadline(execution.scheduler.clock.getAsLong() + 10)
                    .floats("IN", Shape.of(1, 2), 0)
                    .of(1));
            pass(20);
            execution.scheduler.drain();

            assertThat(read(execution).failures()).isEqualTo(Map.of(FailureReason.CANCELED, 1L));
            assertThat(read(execution).inferences().fail()).isEqualTo(new Timing(1, 20));
        }
    }

    @Test
    void aRefusal() {
        try (Execution execution = of(COPY, FakeInstance::copy)) {
            execution.scheduler.queue.stop();
            Execution.submit(execution, 1);

            assertThat(read(execution).failures()).isEqualTo(Map.of(FailureReason.REJECTED, 1L));
        }
    }

    @Test
    void pendingFollowsTheQueueExactly() {
        QueuePolicy policy = new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 10, false, 3);
        try (QueuedRequests queued = QueuedRequests.under(policy)) {
            List<Integer> pending = new ArrayList<>();
            Runnable look = () -> pending.add(queued.scheduler.queue.waiting());
            look.run();
            queued.submit("executed");
            look.run();
            Cancellation cancelled = queued.submit("cancelled");
            queued.submit("late");
            look.run();
            queued.submit("one too many");
            look.run();
            cancelled.cancel();
            look.run();
            queued.scheduler.step();
            look.run();
            queued.scheduler.advance(11);
            look.run();

            assertThat(pending).containsExactly(0, 1, 3, 3, 2, 1, 0);
        }
    }

    @Test
    void countsAFullQueueAsRejected() {
        try (QueuedRequests queued =
                QueuedRequests.under(new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 0, false, 1))) {
            queued.submit("waits");
            queued.submit("one too many");

            MeterReading read = queued.scheduler.model.meter().read();
            assertThat(read.failures()).isEqualTo(Map.of(FailureReason.REJECTED, 1L));
            assertThat(read.inferences().fail().count()).isEqualTo(1);
        }
    }

    @Test
    void countsATimeoutAsRejected() {
        try (QueuedRequests queued =
                QueuedRequests.under(new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 10, false, 0))) {
            queued.submit("late");
            queued.scheduler.advance(11);

            MeterReading read = queued.scheduler.model.meter().read();
            assertThat(read.failures()).isEqualTo(Map.of(FailureReason.REJECTED, 1L));
            assertThat(read.inferences().fail()).isEqualTo(new Timing(1, 11));
        }
    }

    @Test
    void countsARequestWithoutBatchDimensionAsOne() {
        ModelSettings single = ModelSettings.builder("s", 1)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(4)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(4)))
                .build();
        try (Execution execution = of(single, batch -> {
            Tensor in = batch.requests().getFirst().input("IN").orElseThrow();
            batch.requests().getFirst().response().put("OUT", in, () -> {});
        })) {
            execution.submit(execution.request().floats("IN", Shape.of(4), 0).of(1));
            execution.run();

            MeterReading read = read(execution);
            assertThat(read.executions().inferenceCount()).isEqualTo(1);
            assertThat(read.executions().batches())
                    .extracting(BatchStatistics::batchSize)
                    .containsExactly(1L);
        }
    }

    @Test
    void aDeferredExecutionAtItsEnd() {
        AtomicReference<DeferredExecution> deferred = new AtomicReference<>();
        try (Execution execution = of(COPY, batch -> {
            deferred.set(batch.defer());
            FakeInstance.copy(batch);
        })) {
            Execution.submit(execution, 2);
            execution.run();
            assertThat(read(execution).executions().executionCount()).isZero();
            pass(30);

            deferred.get().complete();

            assertThat(read(execution).inferences().compute().infer()).isEqualTo(new Timing(1, 30));
            assertThat(read(execution).executions().executionCount()).isEqualTo(1);
        }
    }

    @Test
    void theFirstReportOfARequestCountsForItsFirstResponse() {
        List<ResponseSender> senders = new ArrayList<>();
        try (Execution execution = of(DECOUPLED, batch -> {
            for (InferenceRequest request : batch.requests()) {
                senders.add(request.sender());
            }
        })) {
            Execution.submit(execution, 1, 1);
            execution.run();
            senders.get(0).report(ResponseReport.of(0, 10, 30));
            senders.get(0).report(ResponseReport.empty(30, 35));
            senders.get(1).report(ResponseReport.of(0, 20, 60));
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> senders.get(1).report(ResponseReport.empty(3, 2)))
                    .withMessage("Response start cannot happen after response end");
            senders.forEach(ResponseSender::complete);
            senders.get(1).report(ResponseReport.failed(60, 61, ErrorCode.INTERNAL));

            List<ResponseStatistics> responses = read(execution).responses();
            assertThat(responses).hasSize(2);
            assertThat(responses.get(0).success()).isEqualTo(new Timing(2, 90));
            assertThat(responses.get(0).computeInfer()).isEqualTo(new Timing(2, 30));
            assertThat(responses.get(1).emptyResponse()).isEqualTo(new Timing(1, 5));
            assertThat(responses.get(1).fail()).isEqualTo(new Timing(1, 1));
        }
    }

    @Test
    void aFailedResponseCountsAtItsPlaceAndNotForItsRequest() {
        List<ResponseSender> senders = new ArrayList<>();
        try (Execution execution =
                of(DECOUPLED, batch -> senders.add(batch.requests().getFirst().sender()))) {
            Execution.submit(execution, 1);
            execution.run();
            ResponseSender sender = senders.getFirst();
            pass(7);
            sender.sendError(new BackendException(ErrorCode.INTERNAL, "first"));
            sender.send(sender.newResponse());
            pass(2);
            sender.sendError(new BackendException(ErrorCode.CANCELLED, "third"));
            sender.report(ResponseReport.of(0, 10, 30)); // of the second
            sender.send(sender.newResponse());
            sender.report(ResponseReport.of(0, 20, 50)); // of the fourth
            sender.complete();

            List<ResponseStatistics> responses = read(execution).responses();
            assertThat(responses).hasSize(4);
            assertThat(responses.get(0).fail()).isEqualTo(new Timing(1, 7));
            assertThat(responses.get(1).success()).isEqualTo(new Timing(1, 30));
            assertThat(responses.get(2).cancel()).isEqualTo(new Timing(1, 2));
            assertThat(responses.get(3).success()).isEqualTo(new Timing(1, 50));
            assertThat(read(execution).inferences().success().count()).isEqualTo(1);
            assertThat(read(execution).inferences().fail().count()).isZero();
        }
    }

    @Test
    void responsesBeyondTheLastPlaceCountTogether() {
        List<ResponseSender> senders = new ArrayList<>();
        try (Execution execution =
                of(DECOUPLED, batch -> senders.add(batch.requests().getFirst().sender()))) {
            Execution.submit(execution, 1);
            execution.run();
            for (int i = 0; i < ModelMeter.MAX_INDICES + 10; i++) {
                senders.getFirst().sendError(new BackendException(ErrorCode.INTERNAL, "no"));
            }
            senders.getFirst().complete();

            List<ResponseStatistics> responses = read(execution).responses();
            assertThat(responses).hasSize(ModelMeter.MAX_INDICES);
            assertThat(responses.getLast().fail().count()).isEqualTo(11);
        }
    }

    @Test
    void aDecoupledRequestAtItsTerminalResponse() {
        List<ResponseSender> senders = new ArrayList<>();
        try (Execution execution = of(DECOUPLED, batch -> {
            for (InferenceRequest request : batch.requests()) {
                senders.add(request.sender());
            }
            pass(4);
        })) {
            Execution.submit(execution, 1, 1);
            execution.run();
            assertThat(read(execution).executions().executionCount()).isEqualTo(1);
            assertThat(read(execution).inferences().success()).isEqualTo(Timing.NONE);
            pass(50);

            senders.get(0).complete();
            senders.get(1).fail(new BackendException(ErrorCode.INTERNAL, "no more"));

            MeterReading read = read(execution);
            assertThat(read.executions().inferenceCount()).isEqualTo(1);
            assertThat(read.inferences().success()).isEqualTo(new Timing(1, 54));
            assertThat(read.inferences().compute().infer()).isEqualTo(new Timing(1, 54));
            assertThat(read.failures()).isEqualTo(Map.of(FailureReason.BACKEND, 1L));
        }
    }

    @Test
    void countsNoWarmup() {
        try (Execution execution = of(COPY, FakeInstance::copy)) {
            InstanceWorker worker = execution.scheduler.workers.getFirst();
            Warmup.Sample sample = new Warmup.Sample(
                    "s",
                    3,
                    () -> List.of(
                            execution.request().floats("IN", Shape.of(1, 2), 0).of(1),
                            execution.request().floats("IN", Shape.of(1, 2), 0).of(1)));
            MeterReading before = read(execution);

            Warmup warmup = new Warmup(execution.scheduler.scope, List.of(sample), 1);
            assertThat(worker.prepare(warmup)).isTrue();

            assertThat(read(execution)).usingRecursiveComparison().isEqualTo(before);
            Execution.submit(execution, 1);
            execution.run();
            assertThat(read(execution).executions().executionCount()).isEqualTo(1);
            assertThat(read(execution).inferences().success().count()).isEqualTo(1);
        }
    }
}
