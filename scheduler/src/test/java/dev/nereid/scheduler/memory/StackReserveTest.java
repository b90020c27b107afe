package dev.nereid.scheduler.memory;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.RepeatedTest;

final class StackReserveTest {
    private static final long STACK_SIZE = 512 << 10;

    /** The first of them run interpreted, the last ones compiled. */
    private static final int DESCENTS = 50;

    private int frames;

    /** The number of frames that fitted where the check passed for the last time; below 0 for none. */
    private int left;

    @RepeatedTest(3)
    void refusesBeforeTheStackIsUsedUp() throws InterruptedException {
        Thread thread = new Thread(null, this::descendOften, "small-stack", STACK_SIZE);
        thread.start();
        thread.join();

        assertThat(left).as("ended normally").isEqualTo(Integer.MAX_VALUE);
    }

    private void descendOften() {
        for (int i = 0; i < DESCENTS; i++) {
            int all = count();
            left = -1;
            descend();
            assertThat(left).as("of %d frames", all).isGreaterThan(all / 64);
        }
        left = Integer.MAX_VALUE;
    }

    /** Descends as long as the check passes, and counts the frames that are left there. */
    @SuppressWarnings("InfiniteRecursion")
    private void descend() {
        try {
            StackReserve.require();
            descend();
        } catch (StackOverflowError _) {
            return;
        }
        if (left < 0) {
            left = count();
        }
    }

    private int count() {
        frames = 0;
        try {
            deepen();
        } catch (StackOverflowError _) {
            return frames;
        }
        return frames;
    }

    @SuppressWarnings("InfiniteRecursion")
    private void deepen() {
        frames++;
        deepen();
    }
}
