package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.admission.LoadLimits;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.WarmupSample;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.ModelSettings;
import java.util.List;
import java.util.Optional;

/**
 * Configures the scheduler of one model version. Immutable.
 *
 * @param settings the model's configuration
 * @param policy how requests wait and are put together; a model without batch dimension executes them one by one in any
 *     case
 * @param backend what the backend allows and promises
 * @param strategy the model's own rule for what goes into a batch, owned and closed by the scheduler; empty for none
 * @param warmup what each instance executes before it takes its first request, in this order
 * @param limits how many calls, and how many bytes of their inputs, the version takes at a time
 */
public record ModelPlan(
        ModelSettings settings,
        BatchingPolicy policy,
        ExecutionTraits backend,
        Optional<BatchingStrategy> strategy,
        List<WarmupSample> warmup,
        LoadLimits limits) {
    /** Checks and copies the components. */
    public ModelPlan {
        requireNonNull(settings, "settings");
        requireNonNull(policy, "policy");
        requireNonNull(backend, "backend");
        requireNonNull(strategy, "strategy");
        warmup = List.copyOf(warmup);
        requireNonNull(limits, "limits");
    }

    /**
     * Makes a plan for any backend, without warm-up or limits.
     *
     * @param settings the model's configuration
     * @param policy how requests wait and are put together
     */
    public ModelPlan(ModelSettings settings, BatchingPolicy policy) {
        this(settings, policy, ExecutionTraits.DEFAULT, Optional.empty(), List.of(), LoadLimits.NONE);
    }

    /**
     * Returns the same plan for a certain backend.
     *
     * @param terms what the backend allows and promises
     * @return the changed plan
     */
    public ModelPlan with(ExecutionTraits terms) {
        return new ModelPlan(settings, policy, terms, strategy, warmup, limits);
    }

    /**
     * Returns the same plan with another rule for what goes into a batch.
     *
     * @param changed the model's own rule; empty for none
     * @return the changed plan
     */
    public ModelPlan withStrategy(Optional<BatchingStrategy> changed) {
        return new ModelPlan(settings, policy, backend, changed, warmup, limits);
    }

    /**
     * Returns the same plan with a warm-up.
     *
     * @param samples what each instance executes before it takes its first request, in this order
     * @return the changed plan
     */
    public ModelPlan with(List<WarmupSample> samples) {
        return new ModelPlan(settings, policy, backend, strategy, samples, limits);
    }

    /**
     * Returns the same plan with certain bounds.
     *
     * @param bounds how many calls, and how many bytes of their inputs, the version takes at a time
     * @return the changed plan
     */
    public ModelPlan with(LoadLimits bounds) {
        return new ModelPlan(settings, policy, backend, strategy, warmup, bounds);
    }
}
