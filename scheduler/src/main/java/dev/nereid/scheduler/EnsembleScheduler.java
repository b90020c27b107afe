package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.Cancellation;
import dev.nereid.api.ModelCatalog.Readiness;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.scheduler.admission.RequestAdmission;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.ensemble.EnsembleIntake;
import dev.nereid.scheduler.ensemble.EnsemblePlan;
import dev.nereid.scheduler.ensemble.EnsembleScope;
import dev.nereid.scheduler.ensemble.StepModels;
import dev.nereid.scheduler.instance.DirectExecutionPolicy;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.statistics.MeterReading;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.spi.BackendTraits;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * Executes the requests to one version of an ensemble as requests to other models. Safe for use by any thread.
 *
 * <p>It has no instances, no threads and no queue. Requests wait in the queues of the steps. The request runs on the
 * threads that submit it, complete its steps or cancel it; the same threads call the observers.
 */
public final class EnsembleScheduler implements Scheduler {
    private final ModelScope model;
    private final StepModels steps;
    private final EnsembleIntake intake;
    private final RequestSubmitter submitter;

    /** Creates a scheduler that accepts requests at once. The statistics of the version may outlive it. */
    public EnsembleScheduler(
            EnsemblePlan plan,
            StepModels steps,
            AdmissionLimits limits,
            SchedulerEnvironment environment,
            ModelMeter meter) {
        this.steps = steps;
        model = new ModelScope(
                plan.settings(),
                environment.memory(),
                environment.clocks().nanoTime(),
                environment.supervision().fatalErrors(),
                meter,
                new RequestAdmission(environment.admission(), limits),
                environment.refusals());
        ExecutionScope scope = ExecutionScope.of(
                model, new AcceptedMemory(true, BackendTraits.DEFAULT.places()), ExecutionScope.DIRECT_CALLBACKS);
        intake = new EnsembleIntake(
                new EnsembleScope(plan, steps, scope, environment.clocks().timer()));
        submitter = new RequestSubmitter(
                scope,
                intake,
                null,
                new DirectExecutionPolicy(plan.settings(), ExecutionTraits.DEFAULT),
                environment.rateLimiter(),
                environment.cache(),
                environment.calls(),
                null);
    }

    @Override
    public Cancellation submit(CheckedRequest request, ResponseObserver observer) {
        requireNonNull(request, "request");
        requireNonNull(observer, "observer");
        return submitter.submit(request, observer);
    }

    @Override
    public void cancelled(RequestOptions options, long arrivedNanos) {
        model.meter().failed(FailureReason.CANCELED, model.nanoTime().getAsLong() - arrivedNanos);
        cancelSequence(options);
    }

    @Override
    public void cancelSequence(RequestOptions options) {
        intake.cancelSequence(options);
    }

    @Override
    public Optional<InstanceControl> instances() {
        return Optional.empty();
    }

    @Override
    public Object source() {
        return model.source();
    }

    @Override
    public long openResponses() {
        return model.drain().openResponses();
    }

    @Override
    public boolean isCached() {
        return submitter.isCached();
    }

    @Override
    public MeterReading statistics() {
        return model.meter().read();
    }

    @Override
    public boolean isReady() {
        return intake.isOpen() && steps.problems().isEmpty();
    }

    @Override
    public CompletionStage<Readiness> checkReady() {
        return intake.isOpen() ? steps.checkReady() : CompletableFuture.completedStage(Readiness.NOT_READY);
    }

    @Override
    public boolean isServing() {
        return intake.isOpen();
    }

    @Override
    public String problems() {
        return steps.problems();
    }

    @Override
    public int inFlight() {
        return model.drain().count();
    }

    @Override
    public int waiting() {
        return 0;
    }

    @Override
    public void drain() {
        intake.stop();
    }

    @Override
    public boolean awaitIdle(long nanos) throws InterruptedException {
        return model.drain().await(nanos);
    }

    @Override
    public void abandon() {
        drain();
        model.detached().abandon();
        model.detached().abandonAll();
    }

    @Override
    public void close() {
        drain();
        model.drain().awaitUninterruptibly();
    }
}
