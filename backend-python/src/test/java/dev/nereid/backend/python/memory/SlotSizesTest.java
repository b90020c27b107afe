package dev.nereid.backend.python.memory;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class SlotSizesTest {
    @Test
    void numbersAllSizesInOrder() {
        long size = 1;
        int count = 0;
        while (size <= SlotSizes.LARGEST) {
            long slotSize = SlotSizes.of(size);
            assertThat(slotSize).isGreaterThanOrEqualTo(size);
            assertThat(SlotSizes.of(slotSize)).isEqualTo(slotSize);
            assertThat(SlotSizes.isSlotSize(slotSize)).isTrue();
            assertThat(SlotSizes.isSlotSize(slotSize - 1)).isFalse();
            assertThat(SlotSizes.isSlotSize(slotSize + 1)).isFalse();
            assertThat(SlotSizes.classOf(slotSize)).isEqualTo(count);
            count++;
            size = slotSize + 1;
        }
        assertThat(count).isEqualTo(SlotSizes.CLASSES);
    }

    @Test
    void hasQuartersAboveOneMebibyte() {
        assertThat(SlotSizes.of(1)).isEqualTo(4096);
        assertThat(SlotSizes.of(4097)).isEqualTo(8192);
        assertThat(SlotSizes.of(600_000)).isEqualTo(1 << 20);
        assertThat(SlotSizes.of((1 << 20) + 1)).isEqualTo(5 << 18);
        assertThat(SlotSizes.of((5 << 18) + 1)).isEqualTo(6 << 18);
        assertThat(SlotSizes.of((7 << 18) + 1)).isEqualTo(2 << 20);
    }
}
