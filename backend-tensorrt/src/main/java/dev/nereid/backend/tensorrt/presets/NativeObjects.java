package dev.nereid.backend.tensorrt.presets;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * Deletes objects of TensorRT. Static functions only.
 *
 * <p>TensorRT has no function for it but {@code delete} of C++, and the presets delete only what Java created: {@code
 * deallocate} of an object that a function returned does nothing. So the deleting destructor is called by its place in
 * the object's table of virtual functions, as the C++ ABI of Linux defines it.
 */
final class NativeObjects {
    /** Of all classes of {@code nvinfer}, which declare the destructor first: behind the one that does not delete. */
    static final int DESTRUCTOR = 1;

    /** Of {@code IParser}, which declares eight functions before it. */
    static final int PARSER_DESTRUCTOR = 9;

    private static final AddressLayout TABLE = ValueLayout.ADDRESS;

    @SuppressWarnings("restricted") // a function of the library
    private static final MethodHandle DELETE =
            Linker.nativeLinker().downcallHandle(FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG));

    private NativeObjects() {}

    /**
     * Deletes an object that nothing uses any more.
     *
     * @param destructor the place of the deleting destructor in the table of its class
     */
    @SuppressWarnings("restricted") // the table of an object of C++
    static void delete(long address, int destructor) {
        MemorySegment object = MemorySegment.ofAddress(address).reinterpret(TABLE.byteSize());
        MemorySegment table = object.get(TABLE, 0).reinterpret((destructor + 1) * TABLE.byteSize());
        try {
            DELETE.invokeExact(table.getAtIndex(TABLE, destructor), address);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("destructor: not called", e);
        }
    }
}
