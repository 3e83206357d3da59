//! The tests of the group `quick` of `generic` that are not run, or that fail: of xfstests of 2026-01-01.

/// Tests that the suite does not run on these mounts, by the reason.
pub(super) const NOT_RUN: &[(&str, &[u16])] = &[
    (
        "F2FS has no blocks that files share: no reflinks, no deduplication",
        &[
            110, 111, 115, 116, 118, 119, 121, 122, 134, 136, 138, 139, 140, 142, 143, 144, 145, 146, 147, 148, 149,
            150, 151, 152, 153, 154, 155, 156, 157, 158, 161, 162, 163, 171, 172, 173, 174, 178, 179, 180, 181, 182,
            183, 185, 188, 189, 190, 191, 194, 195, 196, 197, 199, 200, 201, 202, 203, 205, 206, 216, 217, 218, 220,
            222, 227, 229, 238, 253, 254, 259, 261, 262, 264, 265, 266, 267, 268, 271, 272, 276, 278, 279, 281, 282,
            283, 284, 287, 289, 290, 291, 292, 293, 295, 296, 301, 302, 303, 304, 305, 326, 327, 328, 329, 330, 331,
            332, 353, 358, 359, 372, 373, 374, 407, 408, 414, 458, 463, 501, 513, 514, 515, 516, 517, 518, 540, 541,
            542, 543, 544, 546, 588, 612, 628, 630, 651, 652, 653, 654, 655, 657, 658, 659, 660, 661, 662, 663, 664,
            665, 666, 667, 668, 669, 673, 674, 675, 702, 734,
        ],
    ),
    (
        "The source of the mount has to be a block device, to be put below a device of the device mapper",
        &[
            34, 39, 40, 41, 56, 57, 59, 65, 66, 67, 73, 81, 90, 101, 104, 106, 107, 108, 250, 252, 321, 322, 325, 335,
            336, 338, 341, 342, 343, 347, 348, 361, 376, 441, 456, 466, 479, 480, 481, 483, 484, 489, 498, 502, 510,
            512, 520, 526, 527, 534, 535, 547, 552, 557, 570, 629, 640, 677, 690, 695, 703, 730, 731, 740, 741, 745,
            764, 768, 769, 770, 771, 779, 782, 784, 785,
        ],
    ),
    ("The source of the mount has to be a block device", &[76, 409, 410, 411]),
    (
        "Quotas are not supported",
        &[
            82, 219, 230, 235, 244, 379, 380, 381, 382, 383, 384, 385, 386, 400, 506, 566, 587, 594, 600, 601, 603,
            681, 682,
        ],
    ),
    (
        "A mount has no keys: no encryption",
        &[
            368, 369, 395, 396, 397, 398, 419, 421, 440, 548, 549, 550, 580, 581, 582, 583, 584, 592, 593, 595, 602,
            613, 621, 693, 739,
        ],
    ),
    (
        "FUSE hands no FIEMAP on",
        &[9, 12, 16, 21, 22, 32, 58, 60, 61, 63, 64, 92, 94, 177, 225, 255, 316, 425, 578, 679, 742],
    ),
    (
        "Exchanging ranges of two files is a feature of XFS",
        &[709, 710, 711, 712, 713, 714, 715, 716, 717, 718, 719, 720, 721, 722, 723, 724, 725, 726, 727, 752],
    ),
    (
        "FUSE has no call to shut a file system down",
        &[42, 50, 52, 392, 417, 468, 474, 505, 530, 536, 599, 623, 635, 646, 737, 766],
    ),
    ("FUSE has no swap files", &[356, 357, 370, 472, 493, 494, 495, 496, 497, 554, 569, 636, 641]),
    (
        "The suite formats no FUSE file system, so that it cannot choose a size or blocks",
        &[15, 96, 211, 223, 256, 312, 371, 427, 449, 488, 511],
    ),
    ("Verity is for reading only here, and cannot be turned on", &[572, 573, 574, 575, 576, 577, 624, 625, 692]),
    ("The server has to agree to mounts with other owners, which `fuser` does not offer", &[644, 645, 689, 698, 699]),
    ("Ranges are neither inserted nor collapsed", &[31, 404, 485, 499, 503, 686, 687, 735]),
    ("`fuser` hands no O_TMPFILE on", &[4, 389, 509, 531]),
    ("Files are not mapped from the device (DAX)", &[413, 462, 605, 606, 608]),
    ("Renaming with a whiteout is not supported", &[78, 626, 700]),
    ("Flags of inodes (chattr) are not handed on", &[79, 159, 160, 277, 424, 507, 508, 545, 553, 555, 607]),
    ("Atomic writes need a device that has them", &[765, 775, 776]),
    ("A device or module is needed that a mount of FUSE cannot stand on", &[470, 487, 704, 757, 767]),
    ("FUSE cannot be frozen", &[491, 738]),
    ("Casefolding cannot be turned on", &[556, 783]),
    ("The suite does not take names of FUSE for bytes", &[453, 454]),
    ("The suite knows no defragmentation of FUSE", &[18, 324]),
    ("Delegations of directories need a newer kernel", &[786, 787]),
    ("FUSE has no FITRIM: the server discards by itself", &[260, 288, 537]),
    ("FUSE has no call for the label", &[492]),
    ("It is about a feature of XFS: hints of extents, delayed allocation, or files of 8 EiB", &[367, 525, 614]),
    ("The volumes would have to be larger than those of the suite here", &[620, 781]),
    ("FUSE tells no time of creation to this version of `fuser`", &[528]),
    ("The suite knows no limit of access control lists of FUSE", &[26]),
    ("Sectors smaller than the blocks of the volume are needed", &[114, 240, 450, 538]),
    ("The suite knows no limits of times of FUSE", &[402]),
    ("Control groups of the second version have to be mounted", &[563]),
    ("The program accton has to be installed", &[596]),
    ("The suite builds it only with headers of a newer kernel", &[780]),
];

/// Tests that fail, by the reason.
pub(super) const FAIL: &[(&str, &[u16])] = &[
    ("FUSE keeps no times of access: a read does not change them", &[3]),
    ("The suite takes the room for attributes of a FUSE file for larger than the one of F2FS", &[20]),
    (
        "Index nodes take room of F2FS that the suite has not counted of FUSE, so that a reservation of all but half a MiB fails",
        &[103],
    ),
    ("Root of a container may not raise the limit of the size of files; elsewhere they pass", &[394, 564]),
    ("One image is mounted once; the second mount is refused", &[732]),
];

/// Tests that are not started with `cache=through`, by the reason.
pub(super) const TOO_LONG: &[(&str, &[u16])] =
    &[("Three million appends of four bytes, each of which is a request", &[69])];

/// The tests of a quick run: names, listings, handles, set-id bits, attributes, mappings, appends.
pub(super) const QUICK: &[u16] = &[
    2, 5, 6, 8, 11, 13, 23, 24, 25, 28, 35, 75, 80, 84, 86, 88, 123, 126, 128, 131, 169, 193, 355, 426, 467, 471, 683,
    736, 756,
];
