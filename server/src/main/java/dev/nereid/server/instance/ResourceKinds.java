package dev.nereid.server.instance;

import dev.nereid.scheduler.rate.RateResource;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** Compares the kinds of rate limiter resources: per device or global. Static functions only. */
public final class ResourceKinds {
    private ResourceKinds() {}

    /**
     * Finds a resource that changes its kind. The instances of a model are exchanged one after the other, and no
     * resource may be of both kinds meanwhile.
     *
     * @param target the instances of the new configuration
     * @return the change of the first such resource by name; empty if none changes, or if {@code target} contradicts
     *     itself
     */
    public static Optional<String> change(List<InstancePlan> present, List<InstancePlan> target) {
        Set<String> shared = names(target, true);
        Set<String> separate = names(target, false);
        if (shared.stream().anyMatch(separate::contains)) {
            return Optional.empty();
        }
        Set<String> changed = names(present, false);
        changed.retainAll(shared);
        Set<String> split = names(present, true);
        split.retainAll(separate);
        changed.addAll(split);
        return changed.stream()
                .findFirst()
                .map(name -> shared.contains(name)
                        ? "its resource \"" + name + "\" is one of each device, and would be one of all devices"
                        : "its resource \"" + name + "\" is one of all devices, and would be one of each device");
    }

    private static Set<String> names(List<InstancePlan> instances, boolean global) {
        return instances.stream()
                .filter(instance -> !instance.passive())
                .flatMap(instance -> instance.rateProfile().resources().stream())
                .filter(resource -> resource.global() == global)
                .map(RateResource::name)
                .collect(Collectors.toCollection(TreeSet::new));
    }
}
