package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryPlace;
import java.util.List;
import org.junit.jupiter.api.Test;

final class FakeInstanceContextTest {
    private static final MemoryPlace GPU = new MemoryPlace(MemoryPlace.Kind.GPU, 0);

    @Test
    void allocatesCheckedMemory() {
        FakeDeviceMemory device = new FakeDeviceMemory(GPU);
        LeakCheckingMemory memory = new LeakCheckingMemory(100, device);
        InstanceContext context = new FakeInstanceContext("i", Device.CPU, List.of(), memory);

        AllocatedMemory host = context.memory(MemoryPlace.HOST).allocate(60);
        AllocatedMemory other = context.memory(GPU).allocate(8);
        assertThatExceptionOfType(AssertionError.class).isThrownBy(memory::close);
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> context.memory(MemoryPlace.HOST).allocate(60))
                .withMessageStartingWith("out of memory");
        host.close();
        host.close();
        other.close();

        memory.close();
        assertThat(context.memory(GPU).place()).isEqualTo(GPU);
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> context.memory(new MemoryPlace(MemoryPlace.Kind.GPU, 1)));
    }
}
