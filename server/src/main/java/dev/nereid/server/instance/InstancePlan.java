package dev.nereid.server.instance;

import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.server.host.HostPolicies;
import dev.nereid.spi.Device;
import dev.nereid.spi.DeviceInstanceContext;
import inference.ModelConfig;
import inference.ModelInstanceGroup;
import inference.ModelRateLimiter;
import java.util.ArrayList;
import java.util.List;

/**
 * The description of an instance before it is created. Immutable.
 *
 * @param passive whether it is created but never executes
 */
public record InstancePlan(String name, Device device, List<String> profiles, boolean passive, ModelInstanceGroup group)
        implements DeviceInstanceContext {
    public InstancePlan {
        profiles = List.copyOf(profiles);
    }

    @Override
    public String hostPolicy() {
        return HostPolicies.name(group.getHostPolicy(), device);
    }

    /** Lists the instances of a configuration with filled-in groups. They are in the order of their creation. */
    public static List<InstancePlan> of(ModelConfig config) {
        List<InstancePlan> plans = new ArrayList<>();
        for (ModelInstanceGroup group : config.getInstanceGroupList()) {
            for (int number = 0; number < group.getCount(); number++) {
                String name = group.getName() + "_" + number;
                for (Device device : devices(group)) {
                    plans.add(new InstancePlan(name, device, group.getProfileList(), group.getPassive(), group));
                }
            }
        }
        return plans;
    }

    /**
     * Returns the rate limiter resources of the instance. Numbers are unsigned, and limited to the range of {@code int}.
     */
    RateProfile rateProfile() {
        ModelRateLimiter limiter = group.getRateLimiter();
        List<RateProfile.Resource> resources = limiter.getResourcesList().stream()
                .map(resource ->
                        new RateProfile.Resource(resource.getName(), resource.getGlobal(), cut(resource.getCount())))
                .toList();
        return new RateProfile(cut(limiter.getPriority()), resources);
    }

    private static int cut(int unsigned) {
        return unsigned < 0 ? Integer.MAX_VALUE : unsigned;
    }

    private static List<Device> devices(ModelInstanceGroup group) {
        return switch (group.getKind()) {
            case KIND_GPU ->
                group.getGpusList().stream()
                        .map(id -> new Device(Device.Kind.GPU, id))
                        .toList();
            case KIND_MODEL -> List.of(new Device(Device.Kind.MODEL, 0));
            case KIND_CPU, KIND_AUTO, UNRECOGNIZED -> List.of(Device.CPU);
        };
    }
}
