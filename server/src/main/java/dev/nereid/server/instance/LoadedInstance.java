package dev.nereid.server.instance;

import dev.nereid.scheduler.instance.InstanceAvailability;
import dev.nereid.scheduler.instance.InstanceSlot;
import dev.nereid.server.host.HostPolicies;
import dev.nereid.spi.ModelInstance;

/**
 * A created instance with the plan that it was created from. Immutable.
 *
 * @param instance the backend's instance
 */
public record LoadedInstance(InstancePlan plan, ModelInstance instance) {
    public boolean isPassive() {
        return plan.passive();
    }

    /**
     * Returns the instance as a scheduler takes it.
     *
     * @param policies where its thread runs
     */
    public InstanceSlot slot(HostPolicies policies) {
        return new InstanceSlot(
                plan.name(),
                plan.device(),
                instance,
                plan.rateProfile(),
                policies.placement(plan.hostPolicy()),
                instance instanceof OwnedInstance owned ? owned.availability() : new InstanceAvailability());
    }
}
