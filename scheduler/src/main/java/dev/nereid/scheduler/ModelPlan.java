package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.sequence.SequencePlan;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.ModelSettings;
import java.util.List;
import java.util.Optional;

/**
 * Configures the scheduler of one model version. Immutable.
 *
 * @param settings the model's configuration
 * @param policy the queueing and batching of requests; a model without batch dimension executes them one by one in any
 *     case
 * @param strategy the batching strategy of the model, owned and closed by the scheduler; empty for none
 * @param warmup the samples that each instance executes before its first request, in this order
 * @param limits the limits of requests and input bytes in flight
 * @param iterative whether the backend may reschedule requests, as models with iterative sequences do
 * @param sequences how the sequences of the model are scheduled; empty for a model without
 */
public record ModelPlan(
        ModelSettings settings,
        BatchingPolicy policy,
        ExecutionTraits backend,
        Optional<BatchingStrategy> strategy,
        List<Warmup.Sample> warmup,
        AdmissionLimits limits,
        boolean iterative,
        Optional<SequencePlan> sequences) {
    /** Checks and copies the components. */
    public ModelPlan {
        requireNonNull(settings, "settings");
        requireNonNull(policy, "policy");
        requireNonNull(backend, "backend");
        requireNonNull(strategy, "strategy");
        warmup = List.copyOf(warmup);
        requireNonNull(limits, "limits");
        requireNonNull(sequences, "sequences");
        if (iterative && policy.preserveOrdering()) {
            throw new IllegalArgumentException("policy: preserves the order of responses (expected: not for model '"
                    + settings.name() + "' with iterative sequences, whose requests end when their backend says so)");
        }
    }

    /** Creates a plan for any backend, without warm-up or limits. */
    public ModelPlan(ModelSettings settings, BatchingPolicy policy) {
        this(
                settings,
                policy,
                ExecutionTraits.DEFAULT,
                Optional.empty(),
                List.of(),
                AdmissionLimits.NONE,
                false,
                Optional.empty());
    }

    public ModelPlan with(ExecutionTraits changed) {
        return new ModelPlan(settings, policy, changed, strategy, warmup, limits, iterative, sequences);
    }

    /** Returns the same plan with another batching strategy; empty for none. */
    public ModelPlan withStrategy(Optional<BatchingStrategy> changed) {
        return new ModelPlan(settings, policy, backend, changed, warmup, limits, iterative, sequences);
    }

    /** Returns the same plan with the samples that each instance executes before its first request, in this order. */
    public ModelPlan with(List<Warmup.Sample> samples) {
        return new ModelPlan(settings, policy, backend, strategy, samples, limits, iterative, sequences);
    }

    /** Returns the same plan with other limits of requests and input bytes in flight. */
    public ModelPlan with(AdmissionLimits changed) {
        return new ModelPlan(settings, policy, backend, strategy, warmup, changed, iterative, sequences);
    }

    /**
     * Returns the same plan for a backend that may reschedule requests, or not.
     *
     * @throws IllegalArgumentException if the policy preserves the order of responses
     */
    public ModelPlan withIterative(boolean changed) {
        return new ModelPlan(settings, policy, backend, strategy, warmup, limits, changed, sequences);
    }

    /** Returns the same plan with another plan of sequences; empty for none. */
    public ModelPlan withSequences(Optional<SequencePlan> changed) {
        boolean isIterative =
                iterative || changed.filter(plan -> plan.batching().iterative()).isPresent();
        return new ModelPlan(settings, policy, backend, strategy, warmup, limits, isIterative, changed);
    }
}
