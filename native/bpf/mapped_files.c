#define _GNU_SOURCE
#include "mapped_files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- where functions lie in an ELF file ---------------------------------------------------------------------------- */

/* What a table may have at most; a file that says more is not read. */
static const uint64_t MAX_TABLE_BYTES = UINT64_C(256) << 20;

typedef struct elf_file {
    int fd;
    Elf64_Phdr *segments;
    Elf64_Shdr *sections;
    uint32_t n_segments, n_sections;
} elf_file;

/* Memory that the caller frees; NULL where the file has not so much there. */
static void *read_part(int fd, uint64_t at, uint64_t n_bytes) {
    if (n_bytes == 0 || n_bytes > MAX_TABLE_BYTES || at > INT64_MAX - n_bytes) {
        return NULL;
    }
    char *part = malloc(n_bytes);
    for (uint64_t n_done = 0; part && n_done < n_bytes;) {
        ssize_t n_read = pread(fd, part + n_done, n_bytes - n_done, (off_t)(at + n_done));
        if (n_read <= 0) {
            free(part);
            return NULL;
        }
        n_done += (uint64_t)n_read;
    }
    return part;
}

static bool open_elf(int fd, elf_file *file) {
    Elf64_Ehdr header;
    if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phentsize != sizeof(Elf64_Phdr) ||
        header.e_shentsize != sizeof(Elf64_Shdr)) {
        return false;
    }
    file->fd = fd;
    file->n_segments = header.e_phnum;
    file->n_sections = header.e_shnum;
    file->segments = read_part(fd, header.e_phoff, (uint64_t)header.e_phnum * sizeof(Elf64_Phdr));
    file->sections = read_part(fd, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr));
    return file->segments && file->sections;
}

static uint64_t file_offset(const elf_file *file, uint64_t address) {
    for (uint32_t i = 0; i < file->n_segments; i++) {
        const Elf64_Phdr *segment = &file->segments[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X && address >= segment->p_vaddr &&
            address - segment->p_vaddr < segment->p_filesz) {
            return address - segment->p_vaddr + segment->p_offset;
        }
    }
    return 0;
}

static void look_up(const elf_file *file, const Elf64_Sym *symbol, const char *name, const char *const *names,
                    uint64_t *offsets, size_t n_names) {
    for (size_t i = 0; i < n_names; i++) {
        if (!offsets[i] && strcmp(name, names[i]) == 0) {
            offsets[i] = file_offset(file, symbol->st_value);
        }
    }
}

static void search_table(const elf_file *file, const Elf64_Shdr *table, const char *const *names, uint64_t *offsets,
                         size_t n_names) {
    if (table->sh_link >= file->n_sections) {
        return;
    }
    const Elf64_Shdr *strings = &file->sections[table->sh_link];
    Elf64_Sym *symbols = read_part(file->fd, table->sh_offset, table->sh_size);
    char *text = read_part(file->fd, strings->sh_offset, strings->sh_size);
    if (symbols && text && text[strings->sh_size - 1] == '\0') {
        for (uint64_t i = 0; i < table->sh_size / sizeof(*symbols); i++) {
            bool is_function = ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_shndx != SHN_UNDEF;
            if (is_function && symbols[i].st_name < strings->sh_size) {
                look_up(file, &symbols[i], text + symbols[i].st_name, names, offsets, n_names);
            }
        }
    }
    free(text);
    free(symbols);
}

bool ps_elf_offsets(int fd, const char *const *names, uint64_t *offsets, size_t n_names) {
    elf_file file = {0};
    bool is_read = open_elf(fd, &file);
    for (uint32_t i = 0; is_read && i < file.n_sections; i++) {
        if (file.sections[i].sh_type == SHT_DYNSYM || file.sections[i].sh_type == SHT_SYMTAB) {
            search_table(&file, &file.sections[i], names, offsets, n_names);
        }
    }
    free(file.segments);
    free(file.sections);
    return is_read;
}

/* ---- which files are mapped --------------------------------------------------------------------------------------- */

enum { MAX_FUNCTIONS = 16, LINE_BYTES = PS_PATH_BYTES + 128 };

bool ps_parse_mapping(const char *line, ps_mapping *mapping) {
    char permissions[5] = "";
    int path_at = 0;
    int n = sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n", &mapping->begin,
                   &mapping->end, permissions, &mapping->major, &mapping->minor, &mapping->inode, &path_at);
    if (n != 6 || !path_at || line[path_at] != '/') {
        return false;
    }
    size_t n_bytes = strcspn(line + path_at, "\n");
    if (n_bytes >= sizeof(mapping->path)) {
        return false;
    }
    memcpy(mapping->path, line + path_at, n_bytes);
    mapping->path[n_bytes] = '\0';
    mapping->is_code = permissions[2] == 'x';
    return true;
}

/* How the kernel would name an open file in the list of mappings: what stat says differs on some file systems. */
static bool mapping_of(int fd, ps_mapping *found) {
    char line[LINE_BYTES];
    bool is_found = false;
    void *page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
    FILE *maps = page == MAP_FAILED ? NULL : fopen("/proc/self/maps", "re");
    while (maps && !is_found && fgets(line, sizeof(line), maps)) {
        is_found = ps_parse_mapping(line, found) && found->begin == (uint64_t)(uintptr_t)page;
    }
    if (maps) {
        fclose(maps);
    }
    if (page != MAP_FAILED) {
        munmap(page, 1);
    }
    return is_found;
}

/* The file that a line of the process's mappings is of; -1 where it cannot be opened or is another by now. */
static int open_mapped(int32_t pid, const ps_mapping *mapping) {
    char path[PS_PATH_BYTES + 64];
    ps_mapping *own = malloc(sizeof(*own));
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%" PRId32 "/root%s", pid, mapping->path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is_same = own && fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && mapping_of(fd, own) &&
                   own->major == mapping->major && own->minor == mapping->minor && own->inode == mapping->inode;
    free(own);
    if (fd >= 0 && !is_same) {
        close(fd);
        return -1;
    }
    return fd;
}

static const char *base_name(const char *path) { return strrchr(path, '/') + 1; }

static bool begins(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* llama.cpp's libraries are looked through first, then all others but our own, which stand in for some functions. */
static bool is_for_pass(const char *path, int pass) {
    const char *name = base_name(path);
    bool is_engine = begins(name, "libllama") || begins(name, "libggml");
    return pass == 0 ? is_engine : !is_engine && !begins(name, "libperfsuite");
}

static void search_file(int fd, ps_function *functions, int n_functions) {
    const char *names[MAX_FUNCTIONS];
    uint64_t offsets[MAX_FUNCTIONS] = {0};
    bool is_used = false;
    for (int i = 0; i < n_functions; i++) {
        names[i] = functions[i].name;
    }
    ps_elf_offsets(fd, names, offsets, (size_t)n_functions);
    for (int i = 0; i < n_functions; i++) {
        if (functions[i].fd < 0 && offsets[i]) {
            functions[i].fd = fd;
            functions[i].offset = offsets[i];
            is_used = true;
        }
    }
    if (!is_used) {
        close(fd);
    }
}

static void search_mapping(int32_t pid, const ps_mapping *mapping, ps_function *functions, int n_functions) {
    for (int i = 0; i < n_functions; i++) {
        functions[i].has_library |= begins(base_name(mapping->path), functions[i].library);
    }
    int fd = open_mapped(pid, mapping);
    if (fd >= 0) {
        search_file(fd, functions, n_functions);
    }
}

bool ps_find_functions(int32_t pid, ps_function *functions, int n_functions, ps_problem *problem) {
    char path[64], line[LINE_BYTES];
    if (n_functions > MAX_FUNCTIONS) {
        return ps_fail(problem, "more than %d functions", MAX_FUNCTIONS);
    }
    snprintf(path, sizeof(path), "/proc/%" PRId32 "/maps", pid);
    for (int pass = 0; pass < 2; pass++) {
        errno = 0;
        FILE *maps = fopen(path, "re");
        ps_mapping mapping;
        bool is_read = false;
        while (maps && fgets(line, sizeof(line), maps)) {
            is_read = true;
            if (ps_parse_mapping(line, &mapping) && mapping.is_code && is_for_pass(mapping.path, pass)) {
                search_mapping(pid, &mapping, functions, n_functions);
            }
        }
        int reason = errno;
        if (maps) {
            fclose(maps);
        }
        if (!is_read) {
            return ps_fail(problem, "process %" PRId32 ": its mappings cannot be read (%s); it may have privileges of "
                                    "its own, or have ended",
                           pid, reason ? strerror(reason) : "there are none");
        }
    }
    return true;
}
