package dev.nereid.testkit.contract;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/**
 * The growth of one resource over stretches of equally many loads. Confined to the test's thread.
 *
 * <p>A leak grows in every stretch. Other growth does not last: the compilers of the JVM, for example, hold tens of
 * megabytes while they work. So a resource leaks if it grows beyond its limit in most stretches; one that is far below
 * its limit in the first stretch is not looked at again.
 */
final class GrowthCheck {
    /** The largest number of stretches. */
    static final int MAX_STRETCHES = 5;

    private static final int MAJORITY = MAX_STRETCHES / 2 + 1;

    private final String what;
    private final long limit;
    private final List<Long> growths = new ArrayList<>();
    private OptionalLong before = OptionalLong.empty();

    /**
     * Creates a check.
     *
     * @param what the resource, for messages
     * @param limit the growth that is allowed in a stretch
     */
    GrowthCheck(String what, long limit) {
        this.what = what;
        this.limit = limit;
    }

    /**
     * Adds the number in use at the end of a stretch. The first value is the one before the first stretch.
     *
     * @param inUse the number; empty where it is not known
     */
    void add(OptionalLong inUse) {
        if (inUse.isPresent() && before.isPresent()) {
            growths.add(inUse.getAsLong() - before.getAsLong());
        }
        before = inUse;
    }

    /** Returns whether further stretches can change the result. */
    boolean isOpen() {
        boolean clear = growths.size() == 1 && growths.getFirst() <= limit / 2;
        long within = growths.size() - beyond();
        return isKnown() && !clear && !leaks() && within < MAJORITY;
    }

    /** Returns whether the system says how much is in use. */
    boolean isKnown() {
        return before.isPresent();
    }

    /** Returns whether most stretches grew beyond the limit. */
    boolean leaks() {
        return beyond() >= MAJORITY;
    }

    private long beyond() {
        return growths.stream().filter(growth -> growth > limit).count();
    }

    /** Returns the resource. */
    String what() {
        return what;
    }

    /** Returns the growth in each stretch, with the limit. */
    @Override
    public String toString() {
        return "more " + what + " in each of " + growths.size() + " stretches of loads: " + growths
                + " (expected: at most " + limit + " in most)";
    }
}
