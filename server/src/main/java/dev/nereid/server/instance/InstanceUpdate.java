package dev.nereid.server.instance;

import dev.nereid.spi.Device;
import inference.ModelInstanceGroup;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.BiPredicate;

/**
 * Difference between the present instances of a model and those of a new configuration. Immutable.
 *
 * @param sources for each instance that is wanted, the place among the present ones of the one that does for it; {@link
 *     #NEW} if it has to be made
 * @param removed the places of those present ones that do for none, in no order
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
     * Compares instances: one does for another if their groups differ in nothing but name and count, and their devices
     * in nothing. Among several, the one of the same name goes first, then the first that is left.
     *
     * @param present the instances that there are
     * @param wanted the instances that there are to be
     * @return what to do
     */
    public static InstanceUpdate of(List<InstancePlan> present, List<InstancePlan> wanted) {
        List<Integer> sources = new ArrayList<>(Collections.nCopies(wanted.size(), NEW));
        List<Integer> left = new ArrayList<>();
        for (int i = 0; i < present.size(); i++) {
            left.add(i);
        }
        match(present, wanted, sources, left, (one, other) -> one.name().equals(other.name()));
        match(present, wanted, sources, left, (one, other) -> true);
        return new InstanceUpdate(sources, left);
    }

    private static void match(
            List<InstancePlan> present,
            List<InstancePlan> wanted,
            List<Integer> sources,
            List<Integer> left,
            BiPredicate<InstancePlan, InstancePlan> fits) {
        for (int i = 0; i < wanted.size(); i++) {
            InstancePlan plan = wanted.get(i);
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

    /** Says whether everything stays as it is. */
    public boolean isEmpty() {
        return removed.isEmpty() && !sources.contains(NEW);
    }
}
