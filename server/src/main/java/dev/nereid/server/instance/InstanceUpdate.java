package dev.nereid.server.instance;

import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.spi.Device;
import inference.ModelInstanceGroup;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiPredicate;
import java.util.stream.Collectors;

/**
 * The difference between the present instances of a model and a new configuration. Immutable.
 *
 * @param sources for each target instance, the index of the present one that is kept for it; {@link #NEW} if it has to
 *     be created
 * @param removed the indexes of present instances that are not kept, in no order
 */
public record InstanceUpdate(List<Integer> sources, List<Integer> removed) {
    /** In place of a place: there is no such instance yet. */
    public static final int NEW = -1;

    /** Properties by which one instance can replace another. */
    private record Signature(ModelInstanceGroup group, Device device) {
        static Signature of(InstancePlan plan) {
            return new Signature(
                    plan.group().toBuilder().clearName().clearCount().build(), plan.device());
        }
    }

    public InstanceUpdate {
        sources = List.copyOf(sources);
        removed = List.copyOf(removed);
    }

    /**
     * Compares present instances with the instances of a new configuration. A present one is kept if its group differs
     * in nothing but name and count, and its device in nothing. Among several, the one of the same name is preferred,
     * then the first that is left.
     *
     * @return the difference
     */
    public static InstanceUpdate of(List<InstancePlan> present, List<InstancePlan> target) {
        List<Integer> sources = new ArrayList<>(Collections.nCopies(target.size(), NEW));
        List<Integer> left = new ArrayList<>();
        for (int i = 0; i < present.size(); i++) {
            left.add(i);
        }
        match(
                present,
                target,
                sources,
                left,
                (candidate, plan) -> candidate.name().equals(plan.name()));
        match(present, target, sources, left, (candidate, plan) -> true);
        return new InstanceUpdate(sources, left);
    }

    private static void match(
            List<InstancePlan> present,
            List<InstancePlan> target,
            List<Integer> sources,
            List<Integer> left,
            BiPredicate<InstancePlan, InstancePlan> fits) {
        for (int i = 0; i < target.size(); i++) {
            InstancePlan plan = target.get(i);
            for (int j = 0; j < left.size() && sources.get(i) == NEW; j++) {
                InstancePlan candidate = present.get(left.get(j));
                if (fits.test(candidate, plan) && Signature.of(candidate).equals(Signature.of(plan))) {
                    Integer found = left.get(j);
                    sources.set(i, found);
                    left.removeIf(found::equals);
                }
            }
        }
    }

    /** Returns whether everything stays as it is. */
    public boolean isEmpty() {
        return removed.isEmpty() && !sources.contains(NEW);
    }

    /**
     * Finds a rate limiter resource that changes its kind: per device or global. The instances of a model are exchanged one after the other, and no
     * resource may be of both kinds meanwhile.
     *
     * @param target the instances of the new configuration
     * @return the change of the first such resource by name; empty if none changes, or if {@code target} contradicts
     *     itself
     */
    public static Optional<String> resourceChange(List<InstancePlan> present, List<InstancePlan> target) {
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
                .map(RateProfile.Resource::name)
                .collect(Collectors.toCollection(TreeSet::new));
    }
}
