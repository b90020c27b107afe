package dev.nereid.server.repository;

import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import inference.ModelConfig;
import inference.ModelInstanceGroup;
import java.util.ArrayList;
import java.util.List;

/**
 * An instance to be made. Immutable.
 *
 * @param name the name of its group and its number in it
 * @param device where it will run
 * @param profiles the optimization profiles of its group
 * @param passive whether it is made but never run
 * @param rate what its executions take of limited resources
 */
record InstancePlan(String name, Device device, List<String> profiles, boolean passive, RateProfile rate)
        implements InstanceContext {
    InstancePlan {
        profiles = List.copyOf(profiles);
    }

    /** Lists the instances of a configuration whose groups are filled in, in the order of their making. */
    static List<InstancePlan> of(ModelConfig config) {
        List<InstancePlan> plans = new ArrayList<>();
        for (ModelInstanceGroup group : config.getInstanceGroupList()) {
            RateProfile rate = RateProfiles.of(group);
            for (int number = 0; number < group.getCount(); number++) {
                String name = group.getName() + "_" + number;
                for (Device device : devices(group)) {
                    plans.add(new InstancePlan(name, device, group.getProfileList(), group.getPassive(), rate));
                }
            }
        }
        return plans;
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
