package dev.nereid.server.classification;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Comparator;
import java.util.stream.IntStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/** The heap finds the same elements as a sort of everything. */
class LargestElementsProperties {
    @Property
    void findsWhatSortingFinds(@ForAll @Size(max = 40) byte[] values, @ForAll @IntRange(max = 41) int limit) {
        int classes = Math.min(limit, values.length);
        MemorySegment data = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_BYTE, values);

        int[] found = Classifier.LargestElements.find(Scores.INT8, data, values.length, classes);

        int[] expected = IntStream.range(0, values.length)
                .boxed()
                .sorted(Comparator.<Integer>comparingInt(index -> -values[index])
                        .thenComparing(index -> index))
                .limit(classes)
                .mapToInt(Integer::intValue)
                .toArray();
        assertThat(found).containsExactly(expected);
    }
}
