package dev.nereid.server.repository;

import dev.nereid.scheduler.InstanceSlot;
import dev.nereid.server.host.HostPolicies;
import dev.nereid.spi.ModelInstance;

/**
 * An instance and what it was made from. Immutable.
 *
 * @param plan what was asked for
 * @param instance what the backend made
 */
record MadeInstance(InstancePlan plan, ModelInstance instance) {
    boolean isPassive() {
        return plan.passive();
    }

    /**
     * Returns the instance as a scheduler takes it.
     *
     * @param policies where its thread runs
     */
    InstanceSlot slot(HostPolicies policies) {
        return new InstanceSlot(
                plan.name(),
                plan.device(),
                instance,
                RateProfiles.of(plan.group()),
                policies.placement(plan.hostPolicy()));
    }
}
