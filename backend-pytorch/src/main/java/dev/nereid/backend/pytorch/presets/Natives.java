package dev.nereid.backend.pytorch.presets;

import java.io.IOException;
import java.lang.classfile.ClassFile;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.bytedeco.javacpp.Loader;

/**
 * Loads the libraries of PyTorch from one directory. Static functions only.
 *
 * <p>The presets would search for dozens of libraries of CUDA, and load the ones of the machine; so a property makes them
 * load nothing. The dynamic linker opens the libraries beneath the presets for the life of the process: a second copy
 * of it would end the process. The two libraries of the presets belong to the class loader of the presets.
 */
final class Natives {
    /** The library by which a loaded PyTorch is recognized. */
    static final String LIBRARY = "libtorch_cpu.so";

    private static final String JAVACPP = "libjnijavacpp.so";
    private static final String PRESETS = "libjnitorch.so";
    private static final String QUADMATH = "libquadmath.so.0";
    private static final String OPENBLAS = "libopenblas.so.0";

    /** RTLD_NOW | RTLD_NODELETE. */
    private static final int RESOLVE_ALL_AND_KEEP = 0x1002;

    // Linked before any use: a look-up of a function forgets the reason of the failure before it.
    private static final MethodHandle OPEN = function("dlopen", ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT);
    private static final MethodHandle ERROR = function("dlerror");

    private static final MethodHandle ON_EXIT = function("on_exit", ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);

    /** Each takes memory of the process for its life. */
    private static final int MAX_REGISTRATIONS = 100;

    private static final AtomicInteger REGISTRATIONS = new AtomicInteger();

    private Natives() {}

    /** Loads all of them; does nothing after a load of the same directory. Fails with the linker's reason. */
    static void load(Path directory) throws IOException {
        setProperties();
        // libgfortran does not search its directory for this library, and many systems do not have it.
        open(directory.resolve(QUADMATH).toString());
        open(directory.resolve(LIBRARY).toString()); // and the libraries beside it that it needs
        MethodHandle load = loaderOfPresets();
        load(load, directory.resolve(JAVACPP));
        load(load, directory.resolve(PRESETS));
    }

    /**
     * Makes the process end without the destructors of PyTorch: they would free memory of executions that the server
     * could not wait for. The functions run in the opposite order, before the destructors of all objects created until
     * now: first the output of scripts is written. PyTorch creates some objects with the first execution of a script,
     * so this is called after the load and after first executions; later calls than a hundred do nothing.
     */
    @SuppressWarnings("restricted") // functions of the C library
    static void endWithoutDestructors() {
        if (REGISTRATIONS.getAndUpdate(count -> Math.min(count + 1, MAX_REGISTRATIONS)) == MAX_REGISTRATIONS) {
            return;
        }
        SymbolLookup library = Linker.nativeLinker().defaultLookup();
        for (String last : List.of("_exit", "fcloseall")) {
            try {
                long result =
                        (long) ON_EXIT.invokeExact(library.findOrThrow(last).address(), 0L);
                if ((int) result != 0) {
                    throw new IllegalStateException("on_exit: " + result + " (expected: 0)");
                }
            } catch (Error | RuntimeException e) {
                throw e;
            } catch (Throwable e) {
                throw new IllegalStateException("on_exit: not called", e);
            }
        }
    }

    /**
     * JavaCPP reads them when its classes are initialized, and the first one with each class of the presets. Without the
     * others it counts the memory of the whole process, refuses large models, and has a list of all objects.
     */
    private static void setProperties() {
        System.setProperty("org.bytedeco.javacpp.loadlibraries", "false");
        String[] names = {"maxbytes", "maxphysicalbytes", "nopointergc"};
        String[] values = {"0", "0", "true"};
        String[] before = new String[names.length];
        for (int i = 0; i < names.length; i++) {
            before[i] = System.setProperty("org.bytedeco.javacpp." + names[i], values[i]);
        }
        try {
            MethodHandles.lookup().ensureInitialized(org.bytedeco.javacpp.Pointer.class);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException("org.bytedeco.javacpp.Pointer: not accessible", e);
        } finally { // others may use JavaCPP too
            for (int i = 0; i < names.length; i++) {
                if (before[i] == null) {
                    System.clearProperty("org.bytedeco.javacpp." + names[i]);
                } else {
                    System.setProperty("org.bytedeco.javacpp." + names[i], before[i]);
                }
            }
        }
    }

    /**
     * Returns {@code System.load} for a class in the class loader of the presets. It binds a library to the class
     * loader of its caller, and plugins share the class loader of the presets, but not that of this class.
     */
    private static MethodHandle loaderOfPresets() {
        try {
            return MethodHandles.lookup()
                    .findStatic(callerBesidePresets(), "load", MethodType.methodType(void.class, String.class));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("System.load: not accessible", e);
        }
    }

    private static Class<?> callerBesidePresets() throws ReflectiveOperationException {
        ClassDesc name = ClassDesc.of(Loader.class.getPackageName(), "SystemLoad");
        MethodTypeDesc type = MethodTypeDesc.of(ConstantDescs.CD_void, ConstantDescs.CD_String);
        int flags = ClassFile.ACC_PUBLIC | ClassFile.ACC_STATIC;
        byte[] content = ClassFile.of()
                .build(
                        name,
                        caller -> caller.withFlags(ClassFile.ACC_PUBLIC)
                                .withMethodBody(
                                        "load",
                                        type,
                                        flags,
                                        code -> code.aload(0)
                                                .invokestatic(ClassDesc.of("java.lang.System"), "load", type)
                                                .return_()));
        try {
            return MethodHandles.privateLookupIn(Loader.class, MethodHandles.lookup())
                    .defineClass(content);
        } catch (LinkageError e) { // an earlier plugin has defined it
            return Class.forName(name.packageName() + "." + name.displayName(), true, Loader.class.getClassLoader());
        }
    }

    private static void load(MethodHandle load, Path library) throws IOException {
        try {
            load.invokeExact(library.toString());
        } catch (UnsatisfiedLinkError e) {
            throw new IOException(e.getMessage(), e);
        } catch (Error | RuntimeException e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("System.load: not called", e);
        }
    }

    /** Returns the function of OpenBLAS that sets the number of its threads for the process. */
    @SuppressWarnings("restricted") // a function of the library
    static MethodHandle openBlasThreads(Path directory) {
        SymbolLookup library = SymbolLookup.libraryLookup(directory.resolve(OPENBLAS), Arena.global());
        return Linker.nativeLinker()
                .downcallHandle(
                        library.findOrThrow("openblas_set_num_threads"),
                        FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT));
    }

    private static void open(String library) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            long handle = (long) OPEN.invokeExact(arena.allocateFrom(library).address(), RESOLVE_ALL_AND_KEEP);
            if (handle == 0) {
                throw new IOException(reason(library));
            }
        } catch (IOException | Error | RuntimeException e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("dlopen: not called", e);
        }
    }

    @SuppressWarnings("restricted") // the text of the linker
    private static String reason(String library) throws Throwable {
        long text = (long) ERROR.invokeExact();
        return text == 0
                ? library + ": cannot be opened"
                : MemorySegment.ofAddress(text).reinterpret(Long.MAX_VALUE).getString(0, StandardCharsets.UTF_8);
    }

    @SuppressWarnings("restricted") // functions of the C library
    private static MethodHandle function(String name, ValueLayout... parameters) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(
                linker.defaultLookup().findOrThrow(name), FunctionDescriptor.of(ValueLayout.JAVA_LONG, parameters));
    }
}
