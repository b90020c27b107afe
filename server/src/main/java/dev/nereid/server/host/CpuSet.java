package dev.nereid.server.host;

import java.util.BitSet;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A set of processors of a machine, by number. Immutable. */
final class CpuSet {
    /** More than any machine has; keeps a set small. */
    private static final int MAX_PROCESSOR = 65_535;

    private static final Pattern RANGE = Pattern.compile("(\\d{1,5})(?:-(\\d{1,5}))?");

    private final BitSet processors;

    private CpuSet(BitSet processors) {
        this.processors = processors;
    }

    /**
     * Parses a list of processors. The command line and the operating system use the same format.
     *
     * @param text for instance {@code 0-3,8}
     * @return the processors, at least one; empty if the text is no such list
     */
    static Optional<CpuSet> parse(String text) {
        BitSet processors = new BitSet();
        for (String part : text.strip().split(",", -1)) {
            Matcher range = RANGE.matcher(part);
            if (!range.matches()) {
                return Optional.empty();
            }
            int first = Integer.parseInt(range.group(1));
            int last = range.group(2) == null ? first : Integer.parseInt(range.group(2));
            if (first > last || last > MAX_PROCESSOR) {
                return Optional.empty();
            }
            processors.set(first, last + 1);
        }
        return Optional.of(new CpuSet(processors));
    }

    boolean isWithin(CpuSet others) {
        BitSet rest = (BitSet) processors.clone();
        rest.andNot(others.processors);
        return rest.isEmpty();
    }

    /** Returns one bit for each processor, the first in the lowest, in whole words. */
    long[] words() {
        return processors.toLongArray();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof CpuSet set && processors.equals(set.processors);
    }

    @Override
    public int hashCode() {
        return processors.hashCode();
    }

    /** Returns the list in the format of the parser. It is in rising order and as short as it can be. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        for (int first = processors.nextSetBit(0); first >= 0; ) {
            int end = processors.nextClearBit(first);
            text.append(text.isEmpty() ? "" : ",").append(first);
            if (end > first + 1) {
                text.append('-').append(end - 1);
            }
            first = processors.nextSetBit(end);
        }
        return text.toString();
    }
}
